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

  // The same thing in another piece: by its id, else by what it leads to or is called.
  const again = (it, within) => {
    if (it.id) return within.querySelector(`#${CSS.escape(it.id)}`);
    const tag = it.tagName.toLowerCase();
    const names = ["href", "formaction", "aria-label", "name", ...(it.type === "checkbox" ? ["value"] : [])];
    const own = names.filter((name) => it.hasAttribute(name)).map((name) => `[${name}="${CSS.escape(it.getAttribute(name))}"]`).join("");
    const key = it.closest("details[data-key]")?.dataset.key, action = it.closest("form")?.getAttribute("action");
    const around = key ? `details[data-key="${CSS.escape(key)}"] ` : action ? `form[action="${CSS.escape(action)}"] ` : "";
    return own || around ? within.querySelector(`${around}${tag}${own}`) : null;
  };
  // Who pointed at what is gone points at what has taken its place.
  const inPlace = (it, old, within) => all(it.tagName, within)[all(it.tagName, old).indexOf(it)] ?? within.querySelector("a, button, summary");
  const isText = (it) => /^(INPUT|TEXTAREA|SELECT)$/.test(it.tagName) && it.type !== "checkbox" && it.type !== "radio";
  // What somebody has filled in differently than it came.
  const isFilled = (it) => it.type === "checkbox" || it.type === "radio" ? it.checked !== it.defaultChecked
    : it.tagName === "SELECT" ? [...it.options].some((one) => one.selected !== one.defaultSelected) : it.value !== it.defaultValue;
  // Pieces of the page that are shown anew. What is typed, picked, open or pointed at stays so; where somebody types it waits.
  let isHeld = false;
  const takeRegions = (fresh) => {
    for (const old of all("[data-region]")) {
      const now = fresh.querySelector(`[data-region="${CSS.escape(old.dataset.region)}"]`);
      if (!now || old.isEqualNode(now)) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement : null;
      if (focus && isText(focus)) { isHeld = true; continue; }
      const open = all("details[data-key]", old).map((it) => [it.dataset.key, it.open]);
      const filled = all("input:not([type=hidden]), textarea, select", old).filter(isFilled).map((it) => [it, again(it, now)]);
      const next = focus && (again(focus, now) ?? inPlace(focus, old, now));
      old.replaceWith(now);
      for (const [key, isOpen] of open) all("details", now).filter((it) => it.dataset.key === key).forEach((it) => (it.open = isOpen));
      for (const [was, is] of filled) {
        if (!is) continue;
        if (isText(is)) is.value = was.value;
        else is.checked = was.checked;
      }
      next?.focus({ preventScroll: true });
    }
    showPicked();
    const main = document.querySelector("main");
    const next = fresh.querySelector("main");
    if (main && next) next.hasAttribute("data-over") ? main.setAttribute("data-over", "") : main.removeAttribute("data-over");
  };
  // Whether the page is still the one that it was: what was asked for another is not shown on this one.
  const stay = () => {
    const main = document.querySelector("main");
    return () => main.isConnected;
  };
  const takePage = (text, url) => {
    const fresh = parse(text);
    const next = fresh.querySelector("main");
    if (!next) return location.assign(url);
    clearTimeout(typing);
    closeDialogs();
    document.querySelector("main").replaceWith(next);
    document.title = fresh.title;
    if (url !== location.href) history.pushState({}, "", url);
    here = place();
    const nav = fresh.querySelector("nav.side");
    if (nav) document.querySelector("nav.side")?.replaceWith(nav);
    showPlace();
    say(next.querySelector(".said")?.textContent ?? fresh.title);
    (next.querySelector("[autofocus], .said") ?? next).focus?.();
    showPicked();
    listen();
  };
  // Says that nothing can be had from the server, for as long as that is so.
  const lost = (isLost) => {
    const strip = document.getElementById("lost");
    if (!isLost) return strip?.remove();
    if (strip) return;
    const told = document.createElement("p");
    told.id = "lost";
    told.setAttribute("role", "status");
    told.textContent = "The connection to the server is lost: what is shown may be old. It is tried again.";
    document.body.prepend(told);
  };
  // Whoever is no longer signed in is led to where that is done, and back here afterwards.
  const isOutside = (answer) => {
    const path = new URL(answer.url).pathname;
    if (!answer.redirected || !path.endsWith("/factory/sign-in")) return false;
    location.assign(`${path}?next=${encodeURIComponent(place())}`);
    return true;
  };
  const load = async (url) => {
    // Whoever never answers is as good as gone, and the next look must not wait for it.
    const asked = fetch(url, { ...html, signal: AbortSignal.timeout(10000) });
    const answer = await asked.catch((error) => { lost(true); throw error; });
    lost(false);
    if (isOutside(answer)) return null;
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
      if (isOutside(answer)) return;
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
    const isHere = stay();
    const text = await load(url).catch(() => null);
    if (text && isHere() && location.href === new URL(url, location).href) {
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
    if (event.target.matches("[data-check]")) {
      clearTimeout(typing);
      typing = setTimeout(() => check(event.target), 250);
    }
  });

  // What is written is looked over while it is: the server says what it thinks of it, in a piece of the page.
  let checks = 0;
  const check = async (editor) => {
    const mine = ++checks, isHere = stay();
    const answer = await fetch(editor.dataset.check, {
      method: "POST", credentials: "same-origin", body: new URLSearchParams(new FormData(editor.form)),
      headers: { accept: "text/html", "x-csrf-token": meta("csrf") },
    }).catch(() => null);
    const text = await answer?.text();
    if (text && isHere() && mine === checks) takeRegions(parse(text));
  };
  // A place in a text, by line and column.
  const goTo = (link) => {
    const editor = document.getElementById(link.hash.slice(1));
    const [line, column] = link.dataset.goto.split(":").map(Number);
    const before = editor.value.split("\n").slice(0, line - 1).reduce((sum, it) => sum + it.length + 1, 0);
    editor.focus();
    editor.setSelectionRange(before + column - 1, before + column);
  };

  // Dialogs: a link's page, opened over this one.
  const closeDialogs = () => all("dialog[open]").forEach((it) => it.close());
  const openOver = async (link) => {
    const isHere = stay();
    const text = await load(link.href).catch(() => null);
    if (!isHere()) return;
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
    const target = event.target.closest("a[data-dialog], a[data-goto], button[data-close], button[data-copy], button[data-theme-switch]");
    if (!target) return;
    event.preventDefault();
    if (target.matches("a[data-dialog]")) return openOver(target);
    if (target.matches("a[data-goto]")) return goTo(target);
    if (target.matches("[data-close]")) return target.closest("dialog").close();
    if (target.matches("[data-copy]")) {
      const told = (await copy(target.parentElement.querySelector("code, pre"))) ? "Copied" : "Select and copy";
      target.dataset.says ??= target.textContent;
      target.textContent = told;
      say(told);
      setTimeout(() => (target.textContent = target.dataset.says), 1600);
      return;
    }
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = isDark ? "light" : "dark";
    root.dataset.theme = theme;
    document.cookie = `rialto_theme=${theme}; path=/; max-age=31536000; samesite=strict`;
    say(`${theme} colours`);
  });

  // Browsers have no clipboard over plain HTTP: there the text is selected, which is how it was copied before.
  const copy = async (from) => {
    try {
      await navigator.clipboard.writeText(from.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(from);
      try { return document.execCommand("copy"); } catch { return false; }
    }
  };

  // A node of a graph leads to its step, which opens.
  const reveal = () => {
    const step = all("details.step").find((it) => it.id && `#${encodeURIComponent(it.id)}` === location.hash);
    if (!step) return;
    step.open = true;
    step.querySelector("summary").focus();
  };
  addEventListener("hashchange", reveal);

  // On a phone the menu is wider than the screen: where one is comes into sight.
  const showPlace = () => {
    const list = document.querySelector("nav.side ul"), current = list?.querySelector("[aria-current]");
    if (current && list.scrollWidth > list.clientWidth) list.scrollLeft = current.offsetLeft - list.offsetLeft - (list.clientWidth - current.offsetWidth) / 2;
  };

  // Picking: all that are listed at once, and what the button does then.
  const showPicked = () => {
    const button = document.querySelector("[data-picks]"), whole = document.querySelector("[data-pick-all]");
    const listed = all("input[name=pick]"), picked = listed.filter((it) => it.checked).length;
    if (button) button.textContent = picked ? `Refresh ${picked} picked` : button.dataset.picks;
    if (whole) [whole.checked, whole.indeterminate] = [picked > 0 && picked === listed.length, picked > 0 && picked < listed.length];
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) all("input[name=pick]").forEach((it) => (it.checked = event.target.checked));
    if (event.target.matches("[data-pick-all], [name=pick]")) showPicked();
  });

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

  // How long ago, and how far ahead, is said anew as time goes by; by the server's clock.
  let skew = 0;
  const setClock = () => {
    const now = Number(document.querySelector("main")?.dataset.now);
    if (now) skew = now * 1000 - Date.now();
  };
  const inWords = (seconds, least) => seconds < least ? "now" : seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${Math.floor(seconds / 60)} min`
    : seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} days`;
  const tick = () => {
    const now = Date.now() + skew;
    for (const it of all("time[data-ago], time[data-ahead]")) {
      const isAgo = it.hasAttribute("data-ago");
      const away = Math.floor((isAgo ? now - Date.parse(it.dateTime) : Date.parse(it.dateTime) - now) / 1000);
      const said = inWords(away, isAgo ? 5 : 1);
      it.textContent = said === "now" ? said : isAgo ? `${said} ago` : `in ${said}`;
    }
  };
  setInterval(tick, 10000);

  // What is pressed is not taken away before it is let go of.
  let isPressed = false;
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  addEventListener("pointerdown", () => (isPressed = true), true);
  for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, () => setTimeout(() => (isPressed = false), 0), true);

  // Live pages: whatever comes on record has the page look again, at most once a second. Who may not listen looks now and then.
  let source, timer, due = false, isLooking = false, looks = 0;
  const isLive = () => Boolean(document.querySelector("main[data-live]:not([data-over]), main:not([data-over]) [data-often]"));
  const rest = () => { source?.close(); clearInterval(timer); };
  const look = async () => {
    if (isLooking || document.hidden) { due = true; return; }
    isLooking = true;
    due = isHeld = false;
    const from = place(), isHere = stay();
    try {
      const text = await load(location.href);
      while (isPressed) await sleep(50);
      if (text && isHere() && from === place()) takeRegions(parse(text));
      root.dataset.looks = String(++looks);
    } catch { /* it is asked again with the next news, or soon */ due = true; }
    if (document.querySelector("main[data-over]")) rest();
    setTimeout(() => { isLooking = false; if (due) look(); }, document.getElementById("lost") ? 3000 : 700);
  };
  const listen = () => {
    rest();
    setClock();
    const main = document.querySelector("main");
    const events = main?.dataset.live;
    // Browsers open few connections to one server: those who are not looked at keep none.
    if (!main || main.hasAttribute("data-over") || document.hidden) return;
    // Some of what such a page shows comes without any news.
    const often = main.querySelector("[data-often]");
    if (often) timer = setInterval(look, Number(often.dataset.often) || 4000);
    if (!events) return;
    source = new EventSource(events);
    // Some pages show what there is, and not what comes on record: only a change of that matters to them.
    const watched = main.querySelector("[data-watch]")?.dataset.watch.split(" ");
    source.addEventListener("change", (event) => {
      if (!watched || watched.includes(JSON.parse(event.data).what)) look();
    });
    // Whatever came while nobody listened, as before the first time, is told only where the address says what was seen.
    let isTold = new URL(events, location).searchParams.has("after");
    source.addEventListener("open", () => { if (!isTold) look(); isTold = false; });
    const news = watched ? ["missed"] : ["message", "pre-verb", "post-verb", "verb-error", "admin", "missed", "accepted", "progress", "artifact", "asked", "answered", "finished", "replied", "failed", "rejected", "canceled"];
    news.forEach((name) => source.addEventListener(name, look));
    const mine = source;
    source.addEventListener("error", () => {
      if (mine !== source) return;
      // Whether the server is there at all, and still knows who looks, a look tells.
      look();
      if (mine.readyState !== EventSource.CLOSED) return;
      clearInterval(timer);
      timer = setInterval(look, 4000);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return rest();
    if (isLive()) look();
    listen();
  });
  // What waited until nobody types there any more.
  document.addEventListener("focusout", () => setTimeout(() => isHeld && look(), 0));
  listen();
  reveal();
  showPlace();
})();
