// Live updates of pages. Everything essential works without it: forms post and redirect.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("script");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
  const base = meta("base");
  const html = { headers: { accept: "text/html" }, credentials: "same-origin" };

  const announce = (text) => {
    const place = document.getElementById("aloud");
    if (place) place.textContent = text;
  };
  const parse = (text) => new DOMParser().parseFromString(text, "text/html");

  // Matching element in another fragment: by its id, or else by its target or name.
  const matchIn = (it, within) => {
    if (it.id) return within.querySelector(`#${CSS.escape(it.id)}`);
    const tag = it.tagName.toLowerCase();
    const names = ["href", "formaction", "aria-label", "name", ...(it.type === "checkbox" ? ["value"] : [])];
    const own = names.filter((name) => it.hasAttribute(name)).map((name) => `[${name}="${CSS.escape(it.getAttribute(name))}"]`).join("");
    const key = it.closest("details[data-key]")?.dataset.key, action = it.closest("form")?.getAttribute("action");
    const around = key ? `details[data-key="${CSS.escape(key)}"] ` : action ? `form[action="${CSS.escape(action)}"] ` : "";
    return own || around ? within.querySelector(`${around}${tag}${own}`) : null;
  };
  // Element that takes the focus when the focused element is gone.
  const replacementFor = (it, old, within) => all(it.tagName, within)[all(it.tagName, old).indexOf(it)] ?? within.querySelector("a, button, summary");
  const isText = (it) => /^(INPUT|TEXTAREA|SELECT)$/.test(it.tagName) && it.type !== "checkbox" && it.type !== "radio";
  // Whether a field differs from its value in the page.
  const isFilled = (it) => it.type === "checkbox" || it.type === "radio" ? it.checked !== it.defaultChecked
    : it.tagName === "SELECT" ? [...it.options].some((one) => one.selected !== one.defaultSelected) : it.value !== it.defaultValue;
  // Replaces changed regions. Typed text, selections, open details and the focus are kept; a region with a focused text field waits.
  let isHeld = false;
  const replaceRegions = (fresh) => {
    for (const old of all("[data-region]")) {
      const now = fresh.querySelector(`[data-region="${CSS.escape(old.dataset.region)}"]`);
      if (!now || old.isEqualNode(now)) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement : null;
      if (focus && isText(focus)) { isHeld = true; continue; }
      const open = all("details[data-key]", old).map((it) => [it.dataset.key, it.open]);
      const filled = all("input:not([type=hidden]), textarea, select", old).filter(isFilled).map((it) => [it, matchIn(it, now)]);
      const next = focus && (matchIn(focus, now) ?? replacementFor(focus, old, now));
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
  // Function that reports whether the page is still the same, so that a late response is not shown on another page.
  const pageGuard = () => {
    const main = document.querySelector("main");
    return () => main.isConnected;
  };
  const replacePage = (text, url) => {
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
    scrollMenu();
    announce(next.querySelector(".notice")?.textContent ?? fresh.title);
    (next.querySelector("[autofocus], .notice") ?? next).focus?.();
    showPicked();
    listen();
  };
  // Shows a notice while the server cannot be reached.
  const setOffline = (isOffline) => {
    const strip = document.getElementById("lost");
    if (!isOffline) return strip?.remove();
    if (strip) return;
    const notice = document.createElement("p");
    notice.id = "lost";
    notice.setAttribute("role", "status");
    notice.textContent = "Connection to the server lost. This page may be outdated. Reconnecting…";
    document.body.prepend(notice);
  };
  // Goes to the sign-in page when the session has ended, with a way back.
  const isSignedOut = (answer) => {
    const path = new URL(answer.url).pathname;
    if (!answer.redirected || !path.endsWith("/factory/sign-in")) return false;
    location.assign(`${path}?next=${encodeURIComponent(place())}`);
    return true;
  };
  const load = async (url) => {
    // The request has a timeout, so that the next reload is not delayed.
    const asked = fetch(url, { ...html, signal: AbortSignal.timeout(10000) });
    const answer = await asked.catch((error) => { setOffline(true); throw error; });
    setOffline(false);
    if (isSignedOut(answer)) return null;
    return answer.ok ? answer.text() : null;
  };
  // A fragment link is no other page.
  const place = () => location.pathname + location.search;
  let here = place();
  addEventListener("popstate", () => place() !== here && location.reload());

  // A field may have one of these names, so attributes are read instead of properties.
  const to = (form) => form.getAttribute("action");
  const isPost = (form) => form.getAttribute("method") === "post";

  // Forms: the response replaces the page, and errors are shown beside the form.
  const submit = async (form, button) => {
    const fields = new URLSearchParams(new FormData(form, button?.name ? button : undefined));
    const action = button?.hasAttribute("formaction") ? button.formAction : to(form);
    button?.setAttribute("aria-busy", "true");
    announce("Working…");
    try {
      const answer = await fetch(action, {
        method: "POST", body: fields, credentials: "same-origin",
        headers: { accept: "text/html", "x-csrf-token": meta("csrf") },
      });
      if (isSignedOut(answer)) return;
      const text = await answer.text();
      const body = parse(text).querySelector("[data-dialog-body]");
      const dialog = form.closest("dialog");
      if (dialog && body && !answer.redirected) {
        dialog.querySelector("[data-dialog-body]").replaceWith(body);
        announce(body.querySelector(".notice")?.textContent ?? "");
        body.querySelector(".notice")?.focus();
        return;
      }
      replacePage(text, answer.redirected ? answer.url : location.href);
    } catch {
      announce("The server did not answer. Try again.");
      const notice = document.createElement("p");
      notice.className = "notice bad";
      notice.setAttribute("role", "alert");
      notice.textContent = "The server did not answer. Check that it is running, and try again.";
      form.prepend(notice);
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

  // Filters: the list is updated while typing.
  const filter = async (form) => {
    const given = [...new FormData(form)].filter(([, value]) => value !== "");
    const url = `${to(form)}${given.length ? "?" + new URLSearchParams(given) : ""}`;
    history.replaceState({}, "", url);
    here = place();
    const isHere = pageGuard();
    const text = await load(url).catch(() => null);
    if (text && isHere() && location.href === new URL(url, location).href) {
      replaceRegions(parse(text));
      announce(document.querySelector("[data-count]")?.textContent ?? "");
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

  // Editors: the server checks the text while it is typed.
  let checks = 0;
  const check = async (editor) => {
    const mine = ++checks, isHere = pageGuard();
    const answer = await fetch(editor.dataset.check, {
      method: "POST", credentials: "same-origin", body: new URLSearchParams(new FormData(editor.form)),
      headers: { accept: "text/html", "x-csrf-token": meta("csrf") },
    }).catch(() => null);
    const text = await answer?.text();
    if (text && isHere() && mine === checks) replaceRegions(parse(text));
  };
  // Moves the cursor to a line and column.
  const moveCursor = (link) => {
    const editor = document.getElementById(link.hash.slice(1));
    const [line, column] = link.dataset.goto.split(":").map(Number);
    const before = editor.value.split("\n").slice(0, line - 1).reduce((sum, it) => sum + it.length + 1, 0);
    editor.focus();
    editor.setSelectionRange(before + column - 1, before + column);
  };

  // Dialogs: the page of a link, opened above this one.
  const closeDialogs = () => all("dialog[open]").forEach((it) => it.close());
  const openDialog = async (link) => {
    const isHere = pageGuard();
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
    if (target.matches("a[data-dialog]")) return openDialog(target);
    if (target.matches("a[data-goto]")) return moveCursor(target);
    if (target.matches("[data-close]")) return target.closest("dialog").close();
    if (target.matches("[data-copy]")) {
      const notice = (await copy(target.parentElement.querySelector("code, pre"))) ? "Copied" : "Select and copy";
      target.dataset.says ??= target.textContent;
      target.textContent = notice;
      announce(notice);
      setTimeout(() => (target.textContent = target.dataset.says), 1600);
      return;
    }
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = isDark ? "light" : "dark";
    root.dataset.theme = theme;
    document.cookie = `rialto_theme=${theme}; path=/; max-age=31536000; samesite=strict`;
    announce(`${theme} theme`);
  });

  // Browsers have no clipboard API over plain HTTP, so the text is selected and copied with a command.
  const copy = async (from) => {
    try {
      await navigator.clipboard.writeText(from.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(from);
      try { return document.execCommand("copy"); } catch { return false; }
    }
  };

  // A click on a node of a graph opens its step.
  const reveal = () => {
    const step = all("details.step").find((it) => it.id && `#${encodeURIComponent(it.id)}` === location.hash);
    if (!step) return;
    step.open = true;
    step.querySelector("summary").focus();
  };
  addEventListener("hashchange", reveal);

  // On a phone the menu is wider than the screen, so it scrolls to the current entry.
  const scrollMenu = () => {
    const list = document.querySelector("nav.side ul"), current = list?.querySelector("[aria-current]");
    if (current && list.scrollWidth > list.clientWidth) list.scrollLeft = current.offsetLeft - list.offsetLeft - (list.clientWidth - current.offsetWidth) / 2;
  };

  // Selection of rows, and the label of the button for them.
  const showPicked = () => {
    const button = document.querySelector("[data-picks]"), whole = document.querySelector("[data-pick-all]");
    const listed = all("input[name=pick]"), picked = listed.filter((it) => it.checked).length;
    if (button) button.textContent = picked ? `Refresh ${picked} selected` : button.dataset.picks;
    if (whole) [whole.checked, whole.indeterminate] = [picked > 0 && picked === listed.length, picked > 0 && picked < listed.length];
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) all("input[name=pick]").forEach((it) => (it.checked = event.target.checked));
    if (event.target.matches("[data-pick-all], [name=pick]")) showPicked();
  });

  // Keyboard shortcuts: / searches, g and a letter opens a page, ? shows the list.
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

  // Relative times are updated, by the clock of the server.
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
      const text = inWords(away, isAgo ? 5 : 1);
      it.textContent = text === "now" ? text : isAgo ? `${text} ago` : `in ${text}`;
    }
  };
  setInterval(tick, 10000);

  // A pressed element is not replaced before it is released.
  let isPressed = false;
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  addEventListener("pointerdown", () => (isPressed = true), true);
  for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, () => setTimeout(() => (isPressed = false), 0), true);

  // Live pages: each event reloads the page, at most once a second. Without a stream, the page polls.
  let source, timer, due = false, isReloading = false, looks = 0;
  const isLive = () => Boolean(document.querySelector("main[data-live]:not([data-over]), main:not([data-over]) [data-often]"));
  const rest = () => { source?.close(); clearInterval(timer); };
  const reload = async () => {
    if (isReloading || document.hidden) { due = true; return; }
    isReloading = true;
    due = isHeld = false;
    const from = place(), isHere = pageGuard();
    try {
      const text = await load(location.href);
      while (isPressed) await sleep(50);
      if (text && isHere() && from === place()) replaceRegions(parse(text));
      root.dataset.looks = String(++looks);
    } catch { /* tried again with the next event, or soon */ due = true; }
    if (document.querySelector("main[data-over]")) rest();
    setTimeout(() => { isReloading = false; if (due) reload(); }, document.getElementById("lost") ? 3000 : 700);
  };
  const listen = () => {
    rest();
    setClock();
    const main = document.querySelector("main");
    const events = main?.dataset.live;
    // Browsers open few connections to one server, so hidden pages keep none.
    if (!main || main.hasAttribute("data-over") || document.hidden) return;
    // Some content of such a page changes without an event.
    const often = main.querySelector("[data-often]");
    if (often) timer = setInterval(reload, Number(often.dataset.often) || 4000);
    if (!events) return;
    source = new EventSource(events);
    // Some pages show state and no records: only changes of that state matter to them.
    const watched = main.querySelector("[data-watch]")?.dataset.watch.split(" ");
    source.addEventListener("change", (event) => {
      if (!watched || watched.includes(JSON.parse(event.data).what)) reload();
    });
    // Events before the connection are sent only if the URL has the last seen event.
    let isTold = new URL(events, location).searchParams.has("after");
    source.addEventListener("open", () => { if (!isTold) reload(); isTold = false; });
    const news = watched ? ["missed"] : ["message", "pre-verb", "post-verb", "verb-error", "admin", "missed", "accepted", "progress", "artifact", "asked", "answered", "finished", "replied", "failed", "rejected", "canceled"];
    news.forEach((name) => source.addEventListener(name, reload));
    const mine = source;
    source.addEventListener("error", () => {
      if (mine !== source) return;
      // A reload finds out whether the server answers and the session is valid.
      reload();
      if (mine.readyState !== EventSource.CLOSED) return;
      clearInterval(timer);
      timer = setInterval(reload, 4000);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return rest();
    if (isLive()) reload();
    listen();
  });
  // Updates that waited for a text field to lose the focus.
  document.addEventListener("focusout", () => setTimeout(() => isHeld && reload(), 0));
  listen();
  reveal();
  scrollMenu();
})();
