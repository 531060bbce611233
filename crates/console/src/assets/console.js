// Makes pages livelier. Everything essential works without it: forms post and redirect.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("script");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
  const base = meta("base");
  const html = { headers: { accept: "text/html" }, credentials: "same-origin" };

  const say = (text) => {
    const place = document.getElementById("aloud");
    if (place) place.textContent = text;
  };
  const parse = (text) => new DOMParser().parseFromString(text, "text/html");

  // Pieces of the page that are shown anew, unless somebody is typing in one.
  const takeRegions = (fresh) => {
    for (const old of all("[data-region]")) {
      const now = fresh.querySelector(`[data-region="${old.dataset.region}"]`);
      if (!now || old.isEqualNode(now)) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement : null;
      if (focus && /^(INPUT|TEXTAREA|SELECT)$/.test(focus.tagName) && focus.type !== "checkbox") continue;
      const open = all("details[open]", old).map((it) => it.dataset.key);
      const picked = all("input:checked", old).map((it) => it.value);
      const name = focus?.id;
      old.replaceWith(now);
      all("details", now).forEach((it) => it.dataset.key && open.includes(it.dataset.key) && (it.open = true));
      all("input[type=checkbox]", now).forEach((it) => picked.includes(it.value) && (it.checked = true));
      if (name) document.getElementById(name)?.focus();
    }
    const main = document.querySelector("main");
    const next = fresh.querySelector("main");
    if (main && next) next.hasAttribute("data-over") ? main.setAttribute("data-over", "") : main.removeAttribute("data-over");
  };
  const takePage = (text, url) => {
    const fresh = parse(text);
    const next = fresh.querySelector("main");
    if (!next) return location.assign(url);
    closeDialogs();
    document.querySelector("main").replaceWith(next);
    document.title = fresh.title;
    if (url !== location.href) history.pushState({}, "", url);
    here = place();
    const nav = fresh.querySelector("nav.side");
    if (nav) document.querySelector("nav.side")?.replaceWith(nav);
    say(next.querySelector(".said")?.textContent ?? fresh.title);
    (next.querySelector("[autofocus], .said") ?? next).focus?.();
    listen();
  };
  const load = async (url) => {
    const answer = await fetch(url, html);
    return answer.ok ? answer.text() : null;
  };
  // A link within the page is no other page.
  const place = () => location.pathname + location.search;
  let here = place();
  addEventListener("popstate", () => place() !== here && location.reload());

  // A field may be called like one of these, so the attributes are asked.
  const to = (form) => form.getAttribute("action");
  const isPost = (form) => form.getAttribute("method") === "post";

  // Forms: what comes back takes the page's place, and trouble is shown where the form is.
  const submit = async (form, button) => {
    const fields = new URLSearchParams(new FormData(form, button?.name ? button : undefined));
    const action = button?.hasAttribute("formaction") ? button.formAction : to(form);
    button?.setAttribute("aria-busy", "true");
    say("Working…");
    try {
      const answer = await fetch(action, {
        method: "POST", body: fields, credentials: "same-origin",
        headers: { accept: "text/html", "x-csrf-token": meta("csrf") },
      });
      const text = await answer.text();
      const body = parse(text).querySelector("[data-dialog-body]");
      const dialog = form.closest("dialog");
      if (dialog && body && !answer.redirected) {
        dialog.querySelector("[data-dialog-body]").replaceWith(body);
        say(body.querySelector(".said")?.textContent ?? "");
        body.querySelector(".said")?.focus();
        return;
      }
      takePage(text, answer.redirected ? answer.url : location.href);
    } catch {
      say("The server did not answer. Try again.");
      const told = document.createElement("p");
      told.className = "said bad";
      told.setAttribute("role", "alert");
      told.textContent = "The server did not answer. See whether it runs, and try again.";
      form.prepend(told);
    } finally {
      button?.removeAttribute("aria-busy");
    }
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-filter]")) {
      event.preventDefault();
      return filter(form);
    }
    if (!isPost(form) || form.matches("[data-plain]")) return;
    event.preventDefault();
    if (event.submitter?.getAttribute("aria-busy") !== "true") submit(form, event.submitter);
  });

  // Filters: the list follows what is typed.
  const filter = async (form) => {
    const given = [...new FormData(form)].filter(([, value]) => value !== "");
    const url = `${to(form)}${given.length ? "?" + new URLSearchParams(given) : ""}`;
    history.replaceState({}, "", url);
    here = place();
    const text = await load(url);
    if (text && location.href === new URL(url, location).href) {
      takeRegions(parse(text));
      say(document.querySelector("[data-count]")?.textContent ?? "");
    }
  };
  let typing;
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (form?.matches("[data-filter]")) {
      clearTimeout(typing);
      typing = setTimeout(() => filter(form), 200);
    }
    if (event.target.matches("[data-validate]")) {
      clearTimeout(typing);
      typing = setTimeout(() => validate(event.target), 250);
    }
  });

  // Policies are checked while they are written.
  const validate = async (editor) => {
    const name = editor.form.elements.name?.value ?? "";
    const answer = await fetch(editor.dataset.validate, {
      method: "POST", credentials: "same-origin",
      headers: { "content-type": "application/json", "x-csrf-token": meta("csrf") },
      body: JSON.stringify({ name, text: editor.value }),
    });
    if (!answer.ok) return;
    const { problems } = await answer.json();
    const place = document.getElementById("problems");
    place.replaceChildren();
    place.className = problems.length ? "said bad" : "said good";
    if (!problems.length) place.textContent = "Valid together with everything else that is in force.";
    for (const problem of problems) {
      const line = document.createElement("p");
      line.textContent = `${problem.place}: ${problem.message}${problem.help ? " (" + problem.help + ")" : ""}`;
      place.append(line);
    }
  };

  // Dialogs: a link's page, opened over this one.
  const closeDialogs = () => all("dialog[open]").forEach((it) => it.close());
  const openOver = async (link) => {
    const text = await load(link.href);
    const body = text && parse(text).querySelector("[data-dialog-body]");
    if (!body) return location.assign(link.href);
    const dialog = document.getElementById("over");
    dialog.querySelector("[data-dialog-body]").replaceWith(body);
    dialog.showModal();
    (body.querySelector("[autofocus]") ?? body.querySelector("input:not([type=hidden]), button"))?.focus();
    dialog.addEventListener("close", () => document.contains(link) && link.focus(), { once: true });
  };
  document.addEventListener("click", async (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    const node = event.target.closest("[data-node]");
    if (node) {
      location.hash = `node-${encodeURIComponent(node.dataset.node)}`;
      return reveal();
    }
    const target = event.target.closest("a[data-dialog], button[data-close], button[data-copy], button[data-theme-switch]");
    if (!target) return;
    event.preventDefault();
    if (target.matches("a[data-dialog]")) return openOver(target);
    if (target.matches("[data-close]")) return target.closest("dialog").close();
    if (target.matches("[data-copy]")) {
      const text = target.parentElement.querySelector("code, pre").textContent;
      await navigator.clipboard?.writeText(text);
      const before = target.textContent;
      target.textContent = "Copied";
      say("Copied");
      setTimeout(() => (target.textContent = before), 1200);
      return;
    }
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = isDark ? "light" : "dark";
    root.dataset.theme = theme;
    document.cookie = `rialto_theme=${theme}; path=/; max-age=31536000; samesite=strict`;
    say(`${theme} colours`);
  });

  // A node of a graph leads to its step, which opens.
  const reveal = () => {
    const step = all("details.step").find((it) => it.id && `#${encodeURIComponent(it.id)}` === location.hash);
    if (!step) return;
    step.open = true;
    step.querySelector("summary").focus();
  };
  addEventListener("hashchange", reveal);

  // Keys: / searches, g and a letter goes somewhere, ? says which.
  let waits = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]")) return;
    if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "?") {
      event.preventDefault();
      document.getElementById("keys")?.showModal();
    } else if (event.key === "g") {
      waits = Date.now();
    } else if (Date.now() - waits < 1500) {
      waits = 0;
      document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
    }
  });

  // Live pages: whatever comes on record has the page look again, at most once a second. Who may not listen looks now and then.
  let source, timer, due = false, isLooking = false, looks = 0;
  const look = async () => {
    if (isLooking || document.hidden) { due = true; return; }
    isLooking = true;
    due = false;
    try {
      const text = await load(location.href);
      if (text) takeRegions(parse(text));
      root.dataset.looks = String(++looks);
    } catch { /* it is asked again with the next news */ }
    if (document.querySelector("main[data-over]")) source?.close();
    setTimeout(() => { isLooking = false; if (due) look(); }, 700);
  };
  const listen = () => {
    source?.close();
    clearInterval(timer);
    const main = document.querySelector("main");
    const events = main?.dataset.live;
    if (!events || main.hasAttribute("data-over")) return;
    // Some of what such a page shows comes without any news.
    if (main.querySelector("[data-often]")) timer = setInterval(look, 4000);
    source = new EventSource(events);
    const news = ["message", "pre-verb", "post-verb", "verb-error", "missed", "accepted", "progress", "artifact", "asked", "answered", "finished", "replied", "failed", "rejected", "canceled"];
    news.forEach((name) => source.addEventListener(name, look));
    const mine = source;
    source.addEventListener("error", () => {
      if (mine !== source || mine.readyState !== EventSource.CLOSED) return;
      clearInterval(timer);
      timer = setInterval(look, 4000);
    });
  };
  document.addEventListener("visibilitychange", () => !document.hidden && due && look());
  listen();
  reveal();
})();
