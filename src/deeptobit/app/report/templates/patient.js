// The patient page: fields, predictions, what moved them, alarms. Predictions are those of
// distribution.js; this file shows them.
{
const numbers = JSON.parse(document.getElementById("numbers").textContent);
const model = readModel(numbers.model);
const {fields, people, coverages} = numbers;
const ranges = numbers.ranges && {
  ...numbers.ranges,
  below: orOpen(numbers.ranges.below, -Infinity),
  above: orOpen(numbers.ranges.above, Infinity),
  centre: unpack(numbers.ranges.centre),
  scale: unpack(numbers.ranges.scale),
  directions: unpack(numbers.ranges.directions),
};
const N_FIRST = 10, N_MOVED = 6, N_PRINTED = 24, N_VISITS = 3, N_TIMES = 25;
const [WIDTH, TOP, BASE, HEIGHT] = [320, 16, 78, 104];  // of a drawing
const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Numbers as text, with the decimal mark of the reader, and back with either mark.

const MARK = (1.5).toLocaleString(undefined, {maximumFractionDigits: 1})[1] === "," ? "," : ".";
const written = (text) => text.replace("-", "\u2212").replace(".", MARK);
const fixed = (value, digits) => written(value.toFixed(digits).replace(/^-(0(?:\.0+)?)$/, "$1"));
const short = (value, digits = 5) => written(String(Number(value.toPrecision(digits))));
// A name that may break after an underscore.
const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, document.createElement("wbr")]).slice(0, -1);
const isKnown = (value) => value !== null && !Number.isNaN(value);
const say = (value) => (!isKnown(value) ? "unknown" : typeof value === "number" ? short(value) : value);
const mark = (input, wrong) => (wrong ? input.setAttribute("aria-invalid", "true") : input.removeAttribute("aria-invalid"));
const percent = (share) => (share > 0 && share < 0.005 ? "<1 %" : share < 1 && share > 0.995 ? ">99 %" : `${Math.round(100 * share)} %`);

// A number; null if the text is empty, NaN if it is no number.
function parse(text) {
  let plain = text.trim().replace("\u2212", "-").replace(/[\s'\u2019]/g, "");
  if (plain === "") return null;
  if (plain.lastIndexOf(",") > plain.lastIndexOf(".")) plain = plain.replaceAll(".", "").replace(",", ".");
  else plain = plain.replaceAll(",", "");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}

// Past visits: one column per visit, with its time and the scores that were recorded.

const {visits} = model, past = [];
const timed = Boolean(visits) && visits.place !== null;
const inputsOf = ({time, values}) => (time ? [time, ...values] : values);
const atTime = (x, time) => { const moved = x.slice(); if (timed) moved[visits.place] = time; return moved; };

function addVisit() {
  const number = past.length + 1;
  const cell = (label) => element("input", {type: "text", inputMode: "decimal", "aria-label": `${label}, visit ${number}`});
  const visit = {time: timed ? cell(visits.name) : null, values: model.targets.map(cell)};
  byId("visit-numbers").append(element("th", {scope: "col", textContent: String(number)}));
  inputsOf(visit).forEach((input, row) => {
    input.addEventListener("input", () => update());
    byId("visit-rows").rows[row].append(element("td", {}, input));
  });
  past.push(visit);
  return visit;
}

if (visits) {
  byId("visits").hidden = false;
  for (const name of inputsOf({time: timed && visits.name, values: model.targets})) {
    byId("visit-rows").append(element("tr", {}, element("th", {scope: "row"}, ...breakable(name))));
  }
  for (let number = 0; number < N_VISITS; number++) addVisit();
  byId("add-visit").addEventListener("click", () => { const {time, values} = addVisit(); (time ?? values[0]).focus(); });
}

// What was typed, visit by visit; one without a time or a score is left out.
function readVisitsTyped() {
  return past.map((visit) => {
    const {time} = visit, inputs = inputsOf(visit), typed = inputs.map(({value}) => parse(value));
    const used = typed.some((value) => value !== null);
    typed.forEach((value, place) => {
      const lacksTime = time !== null && place === 0 && used && value === null;
      mark(inputs[place], Number.isNaN(value) || lacksTime);
    });
    const numbers = typed.map((value) => (Number.isNaN(value) ? null : value));
    return {time: time ? numbers[0] : 0, values: time ? numbers.slice(1) : numbers};
  }).filter(({time, values}) => time !== null && values.some((value) => value !== null));
}

// What is known of the person; features other than time are taken to be the same at all visits.
const knownOf = (x, seen) => learn(model, seen.map(({time, values}) => ({time, values, scores: scoresOf(model, atTime(x, time))})));
const forecast = (x, known) => predict(model, x, personAt(model, known, timed ? x[visits.place] : 0));
const predictFor = (x, seen) => (visits ? forecast(x, knownOf(x, seen)) : predict(model, x));

// Encoded features of the values of all fields, as deeptobit.app.study.Encoder makes them.

const nFeatures = fields.reduce((most, field) => Math.max(most, field.at + field.means.length + field.indicator), 0);

function encode(values) {
  const x = new Array(nFeatures).fill(0);
  fields.forEach((field, number) => put(x, field, values[number]));
  return x;
}

function put(x, field, value) {
  const {at, means, levels, indicator} = field;
  if (!isKnown(value)) means.forEach((mean, place) => { x[at + place] = mean; });
  else if (levels) levels.forEach((level, place) => { x[at + place] = Number(value === level); });
  else x[at] = value;
  if (indicator) x[at + means.length] = Number(!isKnown(value));
}

const typicalOf = (field) => (field.levels ? field.reference : field.typical == null ? null : Number(field.typical.toPrecision(5)));

// Fields.

const controls = fields.map((field, number) => {
  const id = `field-${number}`, why = element("span", {className: "why"});
  const box = element("div", {className: "field"}, element("label", {htmlFor: id}, ...breakable(field.title ?? field.name)));
  let input, slider = null;
  if (field.levels) {
    input = element("select", {id});
    for (const level of [field.reference, ...field.levels]) input.append(element("option", {value: level, textContent: level}));
    input.append(element("option", {value: "", textContent: "unknown"}));
    box.append(input, element("span", {className: "note"}, why));
  } else {
    input = element("input", {id, type: "text", inputMode: "decimal"});
    box.append(input);
    const note = element("span", {className: "note", id: `${id}-note`});
    if (field.low != null && field.high > field.low) {
      const rough = (field.high - field.low) / 200, ten = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((times) => times * ten).find((size) => size >= rough);
      const low = Math.floor(field.low / step) * step, high = Math.ceil(field.high / step) * step;
      slider = element("input", {type: "range", "aria-label": `${field.name}, slider`});
      Object.assign(slider, {min: String(low), max: String(high), step: String(step)});
      slider.addEventListener("input", () => { input.value = short(Number(slider.value)); update(); });
      box.append(slider);
      note.append(element("span", {textContent: short(field.low, 4)}), why, element("span", {textContent: short(field.high, 4)}));
    } else note.append(why);
    input.setAttribute("aria-describedby", note.id);
    box.append(note);
  }
  input.addEventListener("input", () => update());
  byId(number < N_FIRST ? "first" : "rest").append(box);
  return {box, input, slider, why};
});
if (fields.length > N_FIRST) {
  byId("others").hidden = false;
  byId("others").querySelector("summary").textContent = `${fields.length - N_FIRST} more, which matter less`;
}

const valueOf = (field, {input}) => (field.levels ? input.value || null : parse(input.value));
const readValues = () => fields.map((field, number) => valueOf(field, controls[number]));

function write(number, value) {
  controls[number].input.value = !isKnown(value) ? "" : fields[number].levels ? value : short(value);
}

// One card per target.

const digitsOf = (task) => (model.sigma[task] >= 40 ? 0 : Math.min(6, Math.max(1, 1 - Math.floor(Math.log10(model.sigma[task])))));
const cards = model.targets.map((name, task) => {
  const card = {
    value: element("b"),
    change: element("span", {className: "change"}),
    picture: element("div"),
    fan: element("div"),
    ends: element("p", {className: "ends"}),
    moved: element("tbody"),
    details: element("details", {}, element("summary", {textContent: "What changed it"})),
    digits: digitsOf(task),
  };
  const head = element("tr", {}, element("th", {scope: "col", textContent: "Value, in place of the typical one"}), element("th", {scope: "col", textContent: "Points"}));
  card.details.append(element("table", {className: "moved plain"}, element("thead", {}, head), card.moved));
  card.details.addEventListener("toggle", () => showMoved(task));
  const title = element("h3", {id: `score-${task}`}, ...breakable(name));
  byId("cards").append(element("article", {className: "score", "aria-labelledby": title.id}, title,
    element("p", {className: "value"}, card.value, card.change), card.picture, card.ends, card.fan, card.details));
  return card;
});
if (!people) document.querySelector(".of-people").remove();

// The drawing of one outcome: all people behind, this person in front, masses at the bounds.

function draw(task, prediction, before) {
  const {outcome, mean, intervals} = prediction, all = people && people[task];
  const {lower, upper, step} = outcome, [low, high] = intervals.at(-1);
  const from = Number.isFinite(lower) ? lower : Math.min(low - outcome.sigma, all ? all.low : low);
  const to = Number.isFinite(upper) ? upper : Math.max(high + outcome.sigma, all ? all.high : high);
  const across = (y) => 12 + (WIDTH - 24) * (y - from) / (to - from);
  const whole = step > 0 && (to - from) / step <= 60.5 && Number.isFinite(lower) && Number.isFinite(upper);
  const shapes = [];
  if (whole) {
    const scores = Array.from({length: Math.round((to - from) / step) + 1}, (_, k) => from + k * step);
    const mine = scores.map((y) => outcome.mass(y));
    const theirs = all ? scores.map((y) => reached(all, outcome.edge(y)) - reached(all, outcome.edge(y - step))) : [];
    const tallest = Math.max(...mine, ...theirs), half = 0.5 * (WIDTH - 24) * step / (to - from);
    const bar = (y, mass, kind, width) => {
      const top = BASE - (BASE - TOP) * Math.max(mass, 0) / tallest;
      shapes.push(`<rect class="${kind}" x="${(across(y) - width).toFixed(1)}" y="${top.toFixed(1)}" width="${(2 * width).toFixed(1)}" height="${(BASE - top).toFixed(1)}"/>`);
    };
    const narrow = Math.min(Math.max(0.55 * half, 0.8), 9), wide = Math.min(Math.max(0.95 * half, 1), 12);
    theirs.forEach((mass, k) => bar(scores[k], mass, "people", wide));
    mine.forEach((mass, k) => bar(scores[k], mass, k === 0 || k === mine.length - 1 ? "bound" : "one", narrow));
  } else {
    if (all) {
      const size = (all.high - all.low) / (all.cdf.length - 1);
      const curve = all.cdf.slice(1).map((value, k) => [all.low + (k + 0.5) * size, (value - all.cdf[k]) / size]);
      const inside = all.cdf.at(-1) - all.cdf[0];
      hill(curve, inside, "people");
    }
    const points = Array.from({length: 121}, (_, k) => from + k * (to - from) / 120);
    hill(points.map((y) => [y, outcome.density(y)]), 1 - prediction.atLower - prediction.atUpper, "one");
    for (const [y, mass] of [[lower, prediction.atLower], [upper, prediction.atUpper]]) {
      if (!Number.isFinite(y)) continue;
      const top = BASE - (BASE - TOP) * mass;
      shapes.push(`<rect class="bound" x="${(across(y) - 4).toFixed(1)}" y="${top.toFixed(1)}" width="8" height="${(BASE - top).toFixed(1)}"/>`);
    }
  }
  // A density as high as the share of the people between the bounds.
  function hill(curve, inside, kind) {
    const tallest = Math.max(...curve.map(([, value]) => value)) || 1;
    const line = curve.map(([y, value]) => `${across(y).toFixed(1)} ${(BASE - 0.92 * (BASE - TOP) * Math.max(inside, 0.04) * value / tallest).toFixed(1)}`);
    shapes.push(`<path class="${kind}" d="M${across(curve[0][0]).toFixed(1)} ${BASE}L${line.join("L")}L${across(curve.at(-1)[0]).toFixed(1)} ${BASE}z"/>`);
  }
  shapes.push(`<path class="axis" d="M4 ${BASE}H${WIDTH - 4}"/>`);
  const [[a, b], [c, d]] = intervals.map((ends) => ends.map((y) => across(Math.min(Math.max(y, from), to)).toFixed(1)));
  shapes.push(`<path class="wide" d="M${c} ${BASE + 8}H${d}"/><path class="narrow" d="M${a} ${BASE + 8}H${b}"/>`);
  shapes.push(`<circle class="mean" cx="${across(mean).toFixed(1)}" cy="${BASE + 8}" r="4"/>`);
  if (Math.abs(across(mean) - across(before)) > 2) {
    const start = across(before), end = across(mean), back = end > start ? -5 : 5;
    shapes.push(`<path class="arrow" d="M${start.toFixed(1)} 7H${end.toFixed(1)}m${back} -4l${-back} 4l${back} 4"/>`);
  }
  shapes.push(`<text x="4" y="${HEIGHT - 2}">${short(from)}</text><text x="${WIDTH - 4}" y="${HEIGHT - 2}" text-anchor="end">${short(to)}</text>`);
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">${shapes.join("")}</svg>`;
}

// The forecast over time: intervals as bands, the mean as a line, recorded scores as points.
function drawFan(task, times, forecasts, seen, now) {
  const {lower, upper} = forecasts[0][task].outcome, ends = forecasts.map((each) => each[task].intervals.at(-1));
  const known = seen.filter(({values}) => values[task] !== null).map(({time, values}) => [time, values[task]]);
  const heights = [...ends.flat(), ...known.map(([, y]) => y)];
  // The part of the scale that the person is in, in round numbers.
  const lowest = Math.min(...heights), highest = Math.max(...heights);
  const round = 10 ** Math.floor(Math.log10(Math.max(highest - lowest, 1e-9)));
  const from = Math.max(Math.floor(lowest / round) * round, Number.isFinite(lower) ? lower : -Infinity);
  const to = Math.max(Math.min(Math.ceil(highest / round) * round, Number.isFinite(upper) ? upper : Infinity), from + round / 10);
  const across = (time) => (40 + (WIDTH - 52) * (time - times[0]) / (times.at(-1) - times[0])).toFixed(1);
  const up = (y) => (BASE - (BASE - TOP) * (Math.min(Math.max(y, from), to) - from) / (to - from)).toFixed(1);
  const point = (time, y) => `${across(time)} ${up(y)}`;
  const band = (k) => {
    const bands = forecasts.map((each) => each[task].intervals[k]);
    const rim = [...bands.map(([low], n) => point(times[n], low)), ...bands.map(([, high], n) => point(times[n], high)).reverse()];
    return `<path class="fan" d="M${rim.join("L")}z"/>`;
  };
  const mean = forecasts.map((each, n) => point(times[n], each[task].mean));
  const dots = known.map(([time, y]) => `<circle class="visit" cx="${across(time)}" cy="${up(y)}" r="3.5"/>`);
  const labels = `<text x="4" y="${TOP + 8}">${short(to, 4)}</text><text x="4" y="${BASE - 3}">${short(from, 4)}</text><text x="40" y="${HEIGHT - 8}">${short(times[0], 3)}</text><text x="${WIDTH - 4}" y="${HEIGHT - 8}" text-anchor="end">${short(times.at(-1), 3)}</text><text x="${WIDTH / 2}" y="${HEIGHT - 8}" text-anchor="middle"></text>`;
  const svg = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT - 4}" role="img">${coverages.map((_, k) => band(k)).reverse().join("")}<path class="line" d="M${mean.join("L")}"/><path class="axis" d="M36 ${TOP}V${BASE}H${WIDTH - 4}M${across(now)} ${TOP}V${BASE}"/>${dots.join("")}${labels}</svg>`;
  const {fan} = cards[task];
  fan.innerHTML = svg;
  fan.querySelector("text:last-child").textContent = visits.name;
  fan.firstChild.setAttribute("aria-label", `${model.targets[task]} over ${visits.name}: expected ${short(forecasts[0][task].mean, 3)} at ${short(times[0], 3)}, ${short(forecasts.at(-1)[task].mean, 3)} at ${short(times.at(-1), 3)}`);
}

// From the first visit, or the start of the data, to the last time that is of interest.
function showFans({x, known, seen}) {
  const now = x[visits.place], ends = [now, ...visits.range, ...seen.map(({time}) => time)];
  const first = Math.min(...ends), last = Math.max(...ends);
  if (!(last > first)) return;
  const times = Array.from({length: N_TIMES}, (_, k) => first + k * (last - first) / (N_TIMES - 1));
  const forecasts = times.map((time) => forecast(atTime(x, time), known));
  model.targets.forEach((_, task) => drawFan(task, times, forecasts, seen, now));
}

// Share of all people whose score before censoring is at most y.
function reached({low, high, cdf}, y) {
  if (y === Infinity) return 1;
  const place = (y - low) / (high - low) * (cdf.length - 1);
  if (!(place >= 0)) return 0;
  const k = Math.min(Math.floor(place), cdf.length - 2), part = Math.min(place - k, 1);
  return cdf[k] + part * (cdf[k + 1] - cdf[k]);
}

function show(task, prediction, before) {
  const card = cards[task], {mean, intervals, outcome} = prediction;
  const endDigits = outcome.step >= 1 ? 0 : card.digits, name = model.targets[task];
  const difference = mean - before, text = fixed(mean, card.digits);
  const changed = Math.abs(difference) >= 0.5 * 10 ** -card.digits;
  card.value.textContent = text;
  card.change.textContent = changed ? `${difference > 0 ? "\u25b2 +" : "\u25bc "}${fixed(difference, card.digits)}` : "";
  const between = intervals.map(([low, high], k) => `${Math.round(100 * coverages[k])} %: ${fixed(low, endDigits)} to ${fixed(high, endDigits)}`);
  const bounds = [[outcome.lower, prediction.atLower], [outcome.upper, prediction.atUpper]]
    .filter(([bound]) => Number.isFinite(bound)).map(([bound, share]) => `at ${short(bound)}: ${percent(share)}`);
  const phrases = [...between, ...bounds].map((text) => element("span", {textContent: text}));
  card.ends.replaceChildren(...phrases.flatMap((phrase) => [phrase, " "]));
  card.picture.innerHTML = draw(task, prediction, before);
  card.picture.firstChild.setAttribute("aria-label", `${name}: expected ${text}; ${[...between, ...bounds].join("; ")}`);
}

// Which values moved a prediction: each in turn is put back to the typical one.

let state = null, reference = null;

function showMoved(task) {
  const {details, moved, digits} = cards[task];
  if (!details.open || !state) return;
  const rows = fields.map((field, number) => {
    const value = state.values[number], typical = typicalOf(field);
    if (value === typical || (!isKnown(value) && typical === null)) return null;
    const x = state.x.slice();
    put(x, field, typical);
    return {field, value, typical, points: state.found[task].mean - predictFor(x, state.seen)[task].mean};
  }).filter((row) => row && Math.abs(row.points) >= 0.5 * 10 ** -digits);
  rows.sort((first, second) => Math.abs(second.points) - Math.abs(first.points));
  moved.replaceChildren(...rows.slice(0, N_MOVED).map(({field, value, typical, points}) => element("tr", {},
    element("th", {scope: "row"}, ...breakable(field.name), `: ${say(value)} (${say(typical)})`),
    element("td", {textContent: `${points > 0 ? "+" : ""}${fixed(points, digits)}`}))));
  if (!rows.length) moved.append(element("tr", {}, element("td", {colSpan: 2, textContent: "No value changes it."})));
}

// Alarms.

function warn(values, x) {
  const sentences = [], outside = [], wrong = [], blank = [];
  fields.forEach((field, number) => {
    const value = values[number], {box, input, why} = controls[number];
    const isWrong = Number.isNaN(value);
    const isOutside = Boolean(ranges) && !field.levels && isKnown(value) && (value < ranges.below[field.at] || value > ranges.above[field.at]);
    box.classList.toggle("wrong", isWrong);
    box.classList.toggle("outside", isOutside);
    mark(input, isWrong);
    const reason = isWrong ? "not a number" : isOutside ? "outside the data" : "";
    if (why.textContent !== reason) why.textContent = reason;
    if (isWrong) wrong.push(field.name);
    else if (value === null) blank.push(field.name);
    if (isOutside) outside.push(field.name);
  });
  const listed = (names) => (names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", "));
  if (wrong.length) sentences.push(`Not a number: ${listed(wrong)}.`);
  if (!numbers.mayBeBlank && blank.length) sentences.push(`Fill in ${listed(blank)}: the model needs every value.`);
  if (outside.length) sentences.push(`Outside the data that the model learned from: ${listed(outside)}. The predictions are guesses.`);
  else if (ranges && distanceOf(ranges, x) > ranges.farthest) sentences.push("No one in the data was like this: each value is usual, but not together. The predictions are guesses.");
  byId("alarm").hidden = !sentences.length;
  byId("alarm").replaceChildren(...sentences.map((text) => element("p", {textContent: text})));
  return numbers.mayBeBlank || !(blank.length || wrong.length);
}

// All of it, after a change.

let telling = 0;

function update() {
  const values = readValues(), x = encode(values), whole = warn(values, x);
  fields.forEach((field, number) => {
    const control = controls[number], value = values[number];
    if (control.slider && isKnown(value) && control.at !== value) control.slider.value = String(control.at = value);
  });
  byId("cards").hidden = !whole;
  if (!whole) return;
  const seen = visits ? readVisitsTyped() : [], known = visits && knownOf(x, seen);
  state = {values, x, seen, known, found: visits ? forecast(x, known) : predict(model, x)};
  reference ??= state.found.map(({mean}) => mean);
  state.found.forEach((prediction, task) => { show(task, prediction, reference[task]); showMoved(task); });
  if (timed) showFans(state);
  clearTimeout(telling);
  telling = setTimeout(tell, 600);
}

function tell() {
  const changes = state.found.map(({mean}, task) => [Math.abs(mean - reference[task]) / model.sigma[task], task]);
  const [, task] = changes.reduce((most, one) => (one[0] > most[0] ? one : most));
  byId("status").textContent = `Predictions are up to date. ${model.targets[task]}: ${cards[task].value.textContent} ${cards[task].change.textContent}`;
}

function restart(values, words) {
  values.forEach((value, number) => { if (value !== undefined) write(number, value); });
  update();
  byId("status").textContent = words;
}

byId("typical").addEventListener("click", () => {
  writeVisits([]);
  restart(fields.map(typicalOf), "All values are typical.");
});
byId("keep").addEventListener("click", () => {
  if (!state) return;
  reference = state.found.map(({mean}) => mean);
  byId("compared").textContent = "Arrows show the change from the values that you kept.";
  update();
});
byId("find").addEventListener("input", () => {
  const wanted = byId("find").value.trim().toLowerCase();
  fields.forEach((field, number) => {
    if (number >= N_FIRST) controls[number].box.hidden = !field.name.toLowerCase().includes(wanted);
  });
});
byId("form").addEventListener("submit", (event) => event.preventDefault());
byId("print").addEventListener("click", () => print());

function writeVisits(seen) {
  while (past.length < seen.length) addVisit();
  past.forEach(({time, values}, number) => {
    const typed = (value) => (isKnown(value ?? null) ? short(value) : "");
    if (time) time.value = typed(seen[number]?.time);
    values.forEach((input, task) => { input.value = typed(seen[number]?.values[task]); });
  });
}

// A row of a spreadsheet: cells by the names above them, or in the order of the table. For a model
// of visits every row is a visit, and the last one has the values.

function readRow(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  if (!lines.length) return {values: [], words: "Nothing was pasted."};
  const separator = ["\t", ";", ","].find((mark) => lines[0].includes(mark)) ?? "\t";
  const cells = lines.map((line) => line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1")));
  const order = fields.map((_, number) => number).sort((first, second) => fields[first].at - fields[second].at);
  const names = lines.length > 1 ? cells[0] : order.map((number) => fields[number].name);
  const row = visits ? cells.at(-1) : cells[lines.length > 1 ? 1 : 0];
  if (row.length !== names.length) return {values: [], words: `The row has ${row.length} cells, but ${names.length} are expected.`};
  const places = new Map(names.map((name, place) => [name.toLowerCase(), place]));
  let taken = 0;
  const values = fields.map((field) => {
    const place = places.get(field.name.toLowerCase());
    if (place === undefined) return undefined;
    taken += 1;
    if (!field.levels) return parse(row[place]);
    return [field.reference, ...field.levels].includes(row[place]) ? row[place] : null;
  });
  const words = `Took ${taken} of ${fields.length} values.`;
  if (!visits || lines.length < 2) return {values, words};
  const numberOf = (line, name) => { const at = places.get(name.toLowerCase()); return at === undefined ? null : parse(line[at] ?? ""); };
  const seen = cells.slice(1).map((line) => ({time: timed ? numberOf(line, visits.name) : 0, values: model.targets.map((name) => numberOf(line, name))}));
  return {values, seen, words: `${words} Took ${seen.length} visit${seen.length > 1 ? "s" : ""}.`};
}

byId("take").addEventListener("click", () => {
  const {values, seen, words} = readRow(byId("row").value);
  if (seen) writeVisits(seen);
  restart(values, words);
});

// The result as a table for a spreadsheet.

function asText() {
  const heading = ["score", "expected", ...coverages.flatMap((share) => [`${Math.round(100 * share)} % low`, `${Math.round(100 * share)} % high`]), "P(lower bound)", "P(upper bound)"];
  const cell = (value) => String(Number(value.toPrecision(6))).replace(".", MARK);
  const rows = state.found.map(({mean, intervals, atLower, atUpper}, task) => [model.targets[task].replace(/\s+/g, " "), ...[mean, ...intervals.flat(), atLower, atUpper].map(cell)]);
  return [heading, ...rows].map((row) => row.join("\t")).join("\n");
}

byId("copy").addEventListener("click", async () => {
  if (!state) return;
  const area = element("textarea", {value: asText()});
  try {
    await navigator.clipboard.writeText(area.value);
  } catch {  // where the browser keeps its clipboard from files
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  byId("copy").textContent = "Copied";
  setTimeout(() => { byId("copy").textContent = "Copy the result"; }, 1500);
});

addEventListener("beforeprint", () => {
  const entered = fields.map((field, number) => [field, readValues()[number], number])
    .filter(([field, value, number]) => number < N_FIRST || value !== typicalOf(field));
  const shown = entered.slice(0, N_PRINTED).map(([field, value]) => element("div", {},
    element("dt", {textContent: field.name}),
    element("dd", {textContent: say(value)})));
  const left = entered.length - shown.length;
  if (left) shown.push(element("div", {}, element("dt", {textContent: `and ${left} more`})));
  for (const {time, values} of state?.seen ?? []) {
    const scores = values.map((value, task) => (value === null ? "" : `${model.targets[task]} ${short(value)}`)).filter(Boolean);
    shown.push(element("div", {}, element("dt", {textContent: timed ? `Visit at ${short(time)}` : "Visit"}), element("dd", {textContent: scores.join(", ")})));
  }
  byId("entered").querySelector("dl").replaceChildren(...shown);
});

globalThis.patient = {encode, predict: (x, seen = []) => predictFor(x, seen), parse, readRow, asText, fields};
restart(fields.map(typicalOf), "");
}
