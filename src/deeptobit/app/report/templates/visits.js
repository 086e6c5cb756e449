// What past visits say of a person, as in deeptobit.mixed: a score before censoring is
// m + a'u + sigma * noise, where u are standard normal effects: what the person keeps (own effects
// of every outcome, then shared factors), and what is of one visit. Expectation propagation puts a
// Gaussian site exp(nu * eta - tau * eta^2 / 2) in place of the likelihood of a censored entry.

const SETTLED = 1e-11, SWEEPS = 500;

function readVisits(given) {
  const {own, shared, visit} = given, nTasks = own.shape[0], q = own.shape[1];
  const nShared = shared.shape[2], nVisit = visit.shape[1];
  return {...given, own: unpack(own).values, shared: unpack(shared).values, visit: unpack(visit).values,
    nTasks, q, nShared, nVisit, nKept: nTasks * q + nShared};
}

// 1, and time in its unit where there are slopes.
const effectsAt = ({q, time: [start, unit]}, when) => (q > 1 ? [1, (when - start) / unit] : q ? [1] : []);

// Loadings of an outcome on all effects; those of its visit start at `place`, if it is in the past.
function loadsOf(effects, task, z, size, place) {
  const {own, shared, visit, nTasks, q, nShared, nVisit} = effects, loads = new Float64Array(size);
  z.forEach((value, i) => {
    for (let j = 0; j < q; j++) loads[task * q + j] += value * own[(task * q + i) * q + j];
    for (let j = 0; j < nShared; j++) loads[nTasks * q + j] += value * shared[(task * q + i) * nShared + j];
  });
  if (place !== undefined) for (let j = 0; j < nVisit; j++) loads[place + j] = visit[task * nVisit + j];
  return loads;
}

// The lower triangle L of a positive definite matrix, in place.
function factorise(matrix) {
  matrix.forEach((row, i) => {
    for (let j = 0; j <= i; j++) {
      let rest = row[j];
      for (let k = 0; k < j; k++) rest -= row[k] * matrix[j][k];
      row[j] = i === j ? Math.sqrt(rest) : rest / matrix[j][j];
    }
  });
  return matrix;
}

function solveLower(root, right) {
  const solved = new Float64Array(right.length);
  root.forEach((row, i) => {
    let rest = right[i];
    for (let k = 0; k < i; k++) rest -= row[k] * solved[k];
    solved[i] = rest / row[i];
  });
  return solved;
}

function dot(first, second) {
  let sum = 0;
  for (let k = 0; k < first.length; k++) sum += first[k] * second[k];
  return sum;
}

// phi(z) / Phi(z)
function mills(z) {
  if (z > -3) return Math.exp(-0.5 * z * z) / SQRT_2PI / (z > 0 ? 1 - normalTail(z) : normalTail(-z));
  return Math.exp(-0.5 * z * z) / SQRT_2PI / normalTail(-z) || -z;
}

// The first derivative of the log likelihood of a censored entry by its mean, and minus the second.
function slopesOf({low, high}, mean, scale) {
  const below = low === -Infinity, z = below ? (high - mean) / scale : (mean - low) / scale;
  const ratio = mills(z);
  return [(below ? -ratio : ratio) / scale, ratio * (ratio + z) / (scale * scale)];
}

// The posterior of a person. A past visit has the scores before censoring that the features alone
// predict, `scores`, its `time`, and the recorded `values`, null where they are unknown.
function learn(model, past) {
  const effects = model.visits, {nTasks, nVisit, nKept, location, scale, sigma} = effects;
  const size = nKept + past.length * nVisit, entries = [];
  past.forEach(({scores, time, values}, number) => {
    const z = effectsAt(effects, time), place = nKept + number * nVisit;
    for (let task = 0; task < nTasks; task++) {
      const y = values[task];
      if (y === null) continue;
      const standard = (value) => (value - location[task]) / scale[task], mean = standard(scores[task]);
      const low = y <= model.lower[task] ? -Infinity : standard(Math.min(y, model.upper[task]));
      const high = y >= model.upper[task] ? Infinity : standard(Math.max(y, model.lower[task]));
      const known = low === high, variance = sigma[task] ** 2;
      entries.push({low, high, mean, variance, known, loads: loadsOf(effects, task, z, size, place),
        tau: known ? 1 / variance : 0, nu: known ? (low - mean) / variance : 0});
    }
  });
  const censored = entries.filter(({known}) => !known);
  let root, solved, step = 1, change = Infinity;
  for (let sweep = 0; ; sweep++) {
    root = Array.from({length: size}, (_, i) => Float64Array.from({length: size}, (__, j) => Number(i === j)));
    const right = new Float64Array(size);
    for (const {loads, tau, nu} of entries) {
      for (let i = 0; i < size; i++) {
        if (loads[i] === 0) continue;
        right[i] += nu * loads[i];
        for (let j = 0; j <= i; j++) root[i][j] += tau * loads[i] * loads[j];
      }
    }
    solved = solveLower(factorise(root), right);
    if (change <= SETTLED || sweep === SWEEPS || !censored.length) break;
    let largest = 0;
    for (const entry of censored) {
      const reach = solveLower(root, entry.loads), centre = dot(reach, solved), spread = dot(reach, reach);
      const rest = 1 - entry.tau * spread;
      const cavity = spread / rest, around = (centre - spread * entry.nu) / rest;
      const width = Math.sqrt(entry.variance + cavity);
      const [by, bend] = slopesOf(entry, entry.mean + around, width), share = 1 - cavity * bend;
      const moveTau = bend / share - entry.tau, moveNu = (by + around * bend) / share - entry.nu;
      entry.tau += step * moveTau;
      entry.nu += step * moveNu;
      largest = Math.max(largest, Math.abs(moveNu - moveTau * centre) * width + Math.abs(moveTau) * width * width);
    }
    if (largest > change) step = Math.max(0.5 * step, 0.05);
    change = largest;
  }
  return {root, solved};
}

// By how much a person's scores differ from what features alone predict, and their deviation.
function personAt(model, {root, solved}, when) {
  const effects = model.visits, {nTasks, nVisit, visit, sigma, scale} = effects, z = effectsAt(effects, when);
  return Array.from({length: nTasks}, (_, task) => {
    const reach = solveLower(root, loadsOf(effects, task, z, root.length));
    const noise = visit.subarray(task * nVisit, (task + 1) * nVisit);
    const variance = dot(reach, reach) + dot(noise, noise) + sigma[task] ** 2;
    return {shift: scale[task] * dot(reach, solved), sigma: scale[task] * Math.sqrt(variance)};
  });
}
