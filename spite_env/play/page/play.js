// Shows a table and sends what its person does there. Which moves there are, and every picture, comes from the server.
"use strict";

const FRAME_MS = 450;
const DRAG_FROM = 6; // pixels
const at = (id) => document.getElementById(id);
const places = () => [...at("picture").querySelectorAll("[data-place]")];

let name = location.pathname.match(/^\/table\/([\w-]+)$/)?.[1];
let table = null;
let taken = null; // the place of the card that has been chosen
let busy = false;
let hurry = false; // shows the rest of the opponent's turn at once
let keyed = false; // whether the person uses the keyboard, and so needs the focus

// Talking to the server

async function ask(path, body) {
  const options = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let response, answer;
  try {
    response = await fetch(path, options);
    answer = await response.json();
  } catch {
    throw new Error("there is no answer: has the server been stopped?");
  }
  if (response.ok) return answer;
  if (answer.table) show(answer.table);
  throw new Error(answer.error);
}

// Do one thing at a time; what goes wrong is told, and the table stays as it was.
async function alone(action) {
  if (busy) return;
  busy = true;
  hurry = false;
  tell("");
  at("picture").classList.add("waiting");
  const slow = setTimeout(() => tell("…"), 500);
  try {
    await action();
  } catch (error) {
    tell(error.message, true);
  } finally {
    busy = false;
    clearTimeout(slow);
    if (at("told").textContent === "…") tell("");
    at("picture").classList.remove("waiting");
  }
}

const send = (deed, body = {}) =>
  alone(async () => {
    const answer = await ask(`/api/tables/${name}/${deed}`, { revision: table.revision, ...body });
    await play(answer.frames);
    show(answer);
    if (answer.told) tellHint(answer.told);
    const hinted = sources().find((place) => place.classList.contains("hinted"));
    if (keyed) (hinted ?? sources()[0] ?? at("new").querySelector("button")).focus();
  });

async function play(frames) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  for (const frame of still ? [] : frames) {
    if (hurry) break;
    at("picture").innerHTML = frame;
    await new Promise((resolve) => setTimeout(resolve, FRAME_MS));
  }
}

// Showing

function show(next) {
  const ended = table && next.results.length > table.results.length;
  table = next;
  taken = null;
  at("picture").innerHTML = table.picture;
  at("picture").firstElementChild.setAttribute("role", "group"); // no longer one image: it has buttons
  for (const place of places()) cardOf(place)?.classList.add("top");
  at("status").textContent = table.headline + (table.seed ? `. The seed was ${table.seed}.` : "");
  if (ended && !table.over) tell(`${table.results.at(-1)}, and the next game begins`);
  if (table.notice) tell(table.notice, true);
  at("undo").disabled = !table.can_undo;
  at("hint").disabled = table.over;
  at("records").hidden = !table.records;
  at("records").firstElementChild.href = `/api/tables/${name}/records`;
  at("next").open = table.over;
  at("moves").replaceChildren(
    ...table.moves.map((move) => {
      const button = document.createElement("button");
      button.textContent = move.text;
      button.onclick = () => make(move);
      return button;
    }),
  );
  at("log").replaceChildren(
    ...table.log.map(([who, text]) => {
      const line = document.createElement("li");
      line.textContent = who ? `${who}: ${text}` : text;
      line.className = !who ? "outcome" : who === table.opponent ? "" : "own";
      return line;
    }),
  );
  at("log").scrollTop = at("log").scrollHeight;
  light();
}

function tell(text, wrong = false) {
  at("told").textContent = text;
  at("told").classList.toggle("wrong", wrong);
}

function tellHint(text) {
  tell(`${at("hint-agent").value} would play: ${text}`);
  const move = table.moves.find((each) => each.text === text);
  for (const place of places()) {
    place.classList.toggle("hinted", [move.source, move.target].includes(place.dataset.place));
  }
}

// The rectangle at a place that a person takes for its card: the top one, or the gap of an empty pile.
const cardOf = (place) => [...place.querySelectorAll(".card, .king, .gap, .button")].at(-1);

// Mark what can be chosen now, for the eye, the mouse and the keyboard.
function light() {
  const targets = new Set(table.moves.filter((move) => move.source === taken).map((move) => move.target));
  const open = new Set(table.moves.map((move) => move.source));
  for (const place of places()) {
    const { place: id } = place.dataset;
    const usable = open.has(id) || targets.has(id);
    place.classList.toggle("lit", targets.has(id));
    place.classList.toggle("taken", id === taken);
    place.classList.toggle("can-drag", open.has(id));
    if (usable) {
      place.setAttribute("role", "button");
      place.setAttribute("tabindex", "0");
      place.setAttribute("aria-pressed", String(id === taken));
    } else {
      place.removeAttribute("role");
      place.removeAttribute("tabindex");
    }
  }
}

const sources = () => places().filter((place) => place.classList.contains("can-drag"));
const usable = () => places().filter((place) => place.hasAttribute("tabindex"));

// Choosing

function make(move) {
  send("play", { action: move.action });
}

function choose(id) {
  const move = table.moves.find((each) => each.source === taken && each.target === id);
  const atOnce = table.moves.find((each) => each.source === id && each.target === id); // to end the turn
  if (move ?? atOnce) return make(move ?? atOnce);
  const can = table.moves.some((each) => each.source === id);
  taken = can && id !== taken ? id : null;
  light();
  if (keyed) places().find((place) => (taken ? place.classList.contains("lit") : place.dataset.place === id))?.focus();
}

const placeAt = (element) => element?.closest?.("#picture [role=button]");

let pressed = null; // the place that a pointer went down on, and the card that it drags

at("picture").addEventListener("pointerdown", (event) => {
  hurry = true;
  keyed = false;
  const place = placeAt(event.target);
  if (busy || !place || event.button !== 0) return;
  event.preventDefault();
  pressed = { place, x: event.clientX, y: event.clientY, ghost: null };
});

addEventListener("pointermove", (event) => {
  if (!pressed) return;
  const { place, x, y } = pressed;
  if (!pressed.ghost) {
    const far = Math.hypot(event.clientX - x, event.clientY - y) > DRAG_FROM;
    if (!far || !place.classList.contains("can-drag")) return;
    taken = place.dataset.place;
    light();
    pressed.ghost = ghostOf(place);
  }
  pressed.ghost.style.translate = `${event.clientX - x}px ${event.clientY - y}px`;
});

addEventListener("pointerup", (event) => {
  if (!pressed) return;
  const { place, ghost } = pressed;
  drop();
  const under = placeAt(document.elementFromPoint(event.clientX, event.clientY));
  if (!ghost) {
    if (under === place) choose(place.dataset.place);
  } else if (under?.classList.contains("lit")) {
    choose(under.dataset.place);
  } else {
    taken = null;
    light();
  }
});

addEventListener("pointercancel", drop);

function drop() {
  pressed?.ghost?.remove();
  pressed = null;
}

// A copy of the top card of a place, to be dragged about.
function ghostOf(place) {
  const card = cardOf(place);
  const box = card.getBBox();
  const screen = card.getBoundingClientRect();
  const ghost = place.ownerSVGElement.cloneNode(false);
  ghost.append(place.cloneNode(true));
  ghost.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
  ghost.setAttribute("class", "ghost");
  Object.assign(ghost.style, {
    left: `${screen.x}px`,
    top: `${screen.y}px`,
    width: `${screen.width}px`,
    height: `${screen.height}px`,
  });
  document.body.append(ghost);
  return ghost;
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

addEventListener("keydown", (event) => {
  hurry = keyed = true;
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select")) return;
  if (busy || !table) return;
  const place = placeAt(event.target);
  if (place && (event.key === "Enter" || event.key === " ")) choose(place.dataset.place);
  else if (event.key in STEPS) step(STEPS[event.key]);
  else if (event.key === "Escape" && taken) choose(taken);
  else if (event.key === "u" && table.can_undo) send("undo");
  else if (event.key === "h" && !table.over) askHint();
  else return;
  event.preventDefault();
});

// Move the focus among what can be chosen: with a card taken, among the places where it may go.
function step(by) {
  const lit = places().filter((place) => place.classList.contains("lit"));
  const among = lit.length ? lit : usable();
  const next = among.indexOf(document.activeElement) + by;
  among[(next + among.length) % among.length]?.focus();
}

// The desk

const askHint = () => send("hint", { agent: at("hint-agent").value });

at("undo").onclick = () => send("undo");
at("hint").onclick = askHint;
at("new").onsubmit = (event) => {
  event.preventDefault();
  if (!table) return location.assign("/");
  if (!table.over && table.log.length && !confirm("Give up what is in progress?")) return;
  send("new", {
    opponent: at("opponent").value,
    seat: Number(at("seat").value),
    match: at("match").checked,
    seed: at("seed").value,
  });
  at("seed").value = "";
};

function fill(select, names, chosen) {
  select.replaceChildren(...names.map((each) => new Option(each, each, false, each === chosen)));
}

alone(async () => {
  at("next").open = true; // unless there is a table
  const known = await ask("/api/agents");
  fill(at("hint-agent"), known.agents, known.hint);
  fill(at("opponent"), known.agents, known.opponent);
  if (name) {
    show(await ask(`/api/tables/${name}`));
  } else {
    const opened = await ask("/api/tables", {});
    name = opened.name;
    history.replaceState(null, "", `/table/${name}`);
    await play(opened.frames);
    show(opened);
  }
  at("opponent").value = table.opponent;
  at("seat").value = table.seat;
  at("match").checked = table.match;
}).then(() => {
  if (!table) at("status").textContent = "No table here";
});
