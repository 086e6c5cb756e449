"use strict";
// The mathematics of a prediction, as in deeptobit.likelihood and deeptobit.network:
// y = clip(score + sigma * noise, lower, upper), recorded on the grid of possible scores.

// Noise families. Each has the density, the distribution function from below (cdf) and from above
// (sf), both exact in their tails, the mean, and above(z) = E[(noise - z)+], below(z) = E[(z - noise)+].

const SQRT_2PI = Math.sqrt(2 * Math.PI);

// 1 - Phi(z) for z >= 0: a series of positive terms near 0, a continued fraction in the tail.
function normalTail(z) {
  const density = Math.exp(-0.5 * z * z) / SQRT_2PI;
  if (z < 3) {
    let term = z, sum = z;
    for (let k = 3; term > 1e-17 * sum; k += 2) sum += (term *= z * z / k);
    return 0.5 - density * sum;
  }
  let fraction = z;
  for (let k = 120; k > 0; k--) fraction = z + k / fraction;
  return density / fraction;
}

// Of a family that is symmetric about 0, from its density and its upper tail.
function symmetric(density, tail, above) {
  const sf = (z) => (z >= 0 ? tail(z) : 1 - tail(-z));
  return {density, sf, cdf: (z) => sf(-z), mean: 0, above, below: (z) => above(-z)};
}

const FAMILIES = {
  gaussian() {
    const density = (z) => Math.exp(-0.5 * z * z) / SQRT_2PI;
    const above = (z) => (z > 0 ? density(z) - z * normalTail(z) : density(z) - z * (1 - normalTail(-z)));
    return symmetric(density, normalTail, above);
  },
  logistic() {
    const tail = (z) => Math.exp(-z) / (1 + Math.exp(-z));
    const density = (z) => tail(Math.abs(z)) / (1 + Math.exp(-Math.abs(z)));
    return symmetric(density, tail, (z) => Math.max(-z, 0) + Math.log1p(Math.exp(-Math.abs(z))));
  },
  student_t({df, height}) {
    const density = (z) => height * Math.exp(-0.5 * (df + 1) * Math.log1p(z * z / df));
    const tail = (z) => 0.5 * betaShare(df / (df + z * z), 0.5 * df, z, height * Math.sqrt(df), df);
    const above = (z) => {
      const up = Math.abs(z);
      const rest = density(up) * (df + up * up) / (df - 1) - up * tail(up);
      return z > 0 ? rest : rest - z;
    };
    return symmetric(density, tail, above);
  },
  two_piece({base, skew}) {
    const inner = noiseOf(base), up = Math.exp(skew), down = Math.exp(-skew);
    const upShare = up / (up + down), downShare = down / (up + down);
    const upper = (z) => 2 * upShare * up * inner.above(z / up);
    const lower = (z) => 2 * downShare * down * inner.above(-z / down);
    const mean = upper(0) - lower(0);
    return {
      mean,
      density: (z) => 2 / (up + down) * inner.density(z < 0 ? z / down : z / up),
      cdf: (z) => (z < 0 ? 2 * downShare * inner.cdf(z / down) : 1 - 2 * upShare * inner.sf(z / up)),
      sf: (z) => (z < 0 ? 1 - 2 * downShare * inner.cdf(z / down) : 2 * upShare * inner.sf(z / up)),
      above: (z) => (z > 0 ? upper(z) : mean - z + lower(z)),
      below: (z) => (z > 0 ? z - mean + upper(z) : lower(z)),
    };
  },
};

const noiseOf = (noise) => FAMILIES[noise.family](noise);

// The regularised incomplete beta function I_x(a, 1/2) at x = df/(df + z^2), twice the tail of a
// Student t; 1/B(a, 1/2) is given. By its continued fraction, on the side where that is short.
function betaShare(x, a, z, perBeta, df) {
  const y = z * z / (df + z * z);  // 1 - x without cancellation
  const front = perBeta * Math.exp(a * Math.log(x)) * Math.sqrt(y);
  if (x < (a + 1) / (a + 2.5)) return front * betaFraction(x, a, 0.5) / a;
  return 1 - front * betaFraction(y, 0.5, a) / 0.5;
}

function betaFraction(x, a, b) {
  const tiny = 1e-300;
  let c = 1, d = 1 / (Math.abs(1 - (a + b) * x / (a + 1)) < tiny ? tiny : 1 - (a + b) * x / (a + 1));
  let value = d;
  for (let k = 1; k < 500; k++) {
    const even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
    const odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
    let change = 1;
    for (const term of [even, odd]) {
      d = 1 / (1 + term * d || tiny);
      c = 1 + term / c || tiny;
      value *= change = c * d;
    }
    if (Math.abs(change - 1) < 1e-15) break;
  }
  return value;
}

// The distribution of one outcome. `noise` is standardised; a bound is infinite where open.

class Clipped {
  constructor(noise, score, sigma, lower, upper) {
    Object.assign(this, {noise, score, sigma, lower, upper});
    this.a = (lower - score) / sigma;
    this.b = (upper - score) / sigma;
  }
  // E[(noise - z)+] where z > 0, E[(z - noise)+] elsewhere; nothing beyond an open end.
  beyond(z) {
    if (!Number.isFinite(z)) return 0;
    return z > 0 ? this.noise.above(z) : this.noise.below(z);
  }
  mean() {
    const {a, b, lower, upper, score, sigma} = this;
    const nearest = a > 0 ? lower : b <= 0 ? upper : score + sigma * this.noise.mean;
    return Math.min(Math.max(nearest + sigma * (this.beyond(a) - this.beyond(b)), lower), upper);
  }
}

const WIDEST = 1.5;  // steps in units of sigma up to which the midpoint rule is corrected

class Outcome extends Clipped {
  constructor(noise, score, sigma, lower, upper, step, origin) {
    super(noise, score, sigma, lower, upper);
    Object.assign(this, {step, origin});
    if (step > 0) {
      const first = lower + step;
      this.between = new Clipped(noise, score, sigma, first, Math.max(upper - step, first));
    }
  }
  cdf(z) { return z === -Infinity ? 0 : z === Infinity ? 1 : this.noise.cdf(z); }
  atLower() { return this.cdf(this.a); }
  atUpper() { return Number.isFinite(this.b) ? this.noise.sf(this.b) : 0; }
  standardDensity(z) { return Number.isFinite(z) ? this.noise.density(z) : 0; }
  // Density of the score before censoring.
  density(y) { return this.noise.density((y - this.score) / this.sigma) / this.sigma; }
  mean() {
    if (!this.step) return super.mean();
    const {between, step, sigma} = this;
    const width = Math.min(step, WIDEST * sigma), rounding = width * (width / sigma);
    const slopes = this.standardDensity(between.b) - this.standardDensity(between.a);
    const mean = between.mean() + step * (this.atUpper() - this.atLower()) + rounding / 24 * slopes;
    return Math.min(Math.max(mean, this.lower), this.upper);
  }
  // What a score before censoring is recorded as.
  recorded(score) {
    const clipped = Math.min(Math.max(score, this.lower), this.upper);
    if (!this.step || clipped <= this.lower || clipped >= this.upper) return clipped;
    const {between, step, origin} = this;
    const inside = Math.min(Math.max(clipped, between.lower), between.upper);
    const nearest = origin + step * roundHalfToEven((inside - origin) / step);
    return Math.min(Math.max(nearest, this.lower), this.upper);
  }
  quantile(z) { return this.recorded(this.score + this.sigma * z); }
  // The interval between standardised quantiles. Scores belong to it whose mid-p value is between
  // the tails, unless the quantiles were calibrated.
  interval(from, to, calibrated) {
    const low = this.quantile(from), high = this.quantile(to), {step} = this;
    if (!step || calibrated) return [low, high];
    const at = (edge) => this.cdf((edge - this.score) / this.sigma);
    const middle = (y) => 0.5 * (at(this.edge(y - step)) + at(this.edge(y)));
    return [
      middle(low) < this.cdf(from) ? this.recorded(this.edge(low) + 0.5 * step) : low,
      middle(high) > this.cdf(to) ? this.recorded(this.edge(high - step) - 0.5 * step) : high,
    ];
  }
  // The largest score before censoring that is recorded as y or below; y is on the grid.
  edge(y) {
    const {step, lower, upper} = this;
    if (y < lower - 0.5 * step) return -Infinity;
    if (y > upper - 0.5 * step) return Infinity;
    if (y < lower + 0.5 * step) return lower;
    return y > upper - 1.5 * step ? upper : y + 0.5 * step;
  }
  // Probability of one possible score.
  mass(y) {
    const at = (edge) => this.cdf((edge - this.score) / this.sigma);
    return at(this.edge(y)) - at(this.edge(y - this.step));
  }
}

function roundHalfToEven(value) {
  const floor = Math.floor(value), part = value - floor;
  if (part !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

// The model: its parts in turn, then the distribution of every outcome.

function unpack({shape, whole, base64}) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer), size = whole ? 4 : 8;
  const values = new (whole ? Int32Array : Float64Array)(bytes.length / size);
  for (let place = 0; place < values.length; place++) {
    values[place] = whole ? view.getInt32(size * place, true) : view.getFloat64(size * place, true);
  }
  return {shape, values};
}

const unpackPart = (part) => Object.fromEntries(
  Object.entries(part).map(([key, value]) => [key, value.base64 === undefined ? value : unpack(value)]));

const orOpen = (bounds, end) => bounds.map((bound) => (bound === null ? end : bound));

function readModel(given) {
  return {
    ...given,
    lower: orOpen(given.lower, -Infinity),
    upper: orOpen(given.upper, Infinity),
    ends: given.ends.map(([low, high]) => [orOpen(low, -Infinity), orOpen(high, Infinity)]),
    noise: given.noise.map(noiseOf),
    parts: given.parts.map(unpackPart),
    visits: given.visits && readVisits(given.visits),
  };
}

// How each kind of part computes its scores, from x and from the scores below it.
const PARTS = {
  layer({sees, coef, intercept}, x, below) {
    const input = sees === "x" ? x : sees === "below" ? below : [...below, ...x];
    const [nTasks, nInputs] = coef.shape;
    return Array.from({length: nTasks}, (_, task) => {
      let sum = 0;
      for (let place = 0; place < nInputs; place++) sum += coef.values[task * nInputs + place] * input[place];
      return sum + intercept.values[task];
    });
  },
  // A row goes left where its feature is at most the number of the node.
  trees({feature, number, left, right, first, output, start}, x) {
    const scores = Array.from(start.values);
    for (let tree = 0; tree + 1 < first.values.length; tree++) {
      let node = first.values[tree];
      while (feature.values[node] >= 0) {
        const value = x[feature.values[node]], other = right.values[node];
        const goesLeft = Number.isNaN(value) ? other < 0 : value <= number.values[node];
        node = goesLeft ? left.values[node] : Math.abs(other);
      }
      scores[output.values[tree]] += number.values[node];
    }
    return scores;
  },
};

function scoresOf(model, x) {
  let below = null, scores = null;
  for (const part of model.parts) {
    scores = PARTS[part.kind](part, x, below);
    below = scores;
    if (part.kind === "layer") {
      below = scores.map((score, task) => Math.min(Math.max(score, model.lower[task]), model.upper[task]));
    }
  }
  return scores;
}

// With what is known of a person, scores are shifted and have their own deviation.
function outcomesOf(model, scores, person) {
  return scores.map((population, task) => {
    const {shift, sigma: deviation} = person ? person[task] : {shift: 0, sigma: model.sigma[task]};
    const score = population + shift;
    let sigma = deviation;
    if (model.spread) {
      const {growth, centre, width} = model.spread;
      const u = (score - centre[task]) / width[task];
      sigma *= Math.exp(growth[task] * (u / Math.hypot(1, u / 3)));
    }
    const bounds = [model.lower[task], model.upper[task]];
    return new Outcome(model.noise[task], score, sigma, ...bounds, model.step[task], model.origin[task]);
  });
}

// Predictions for encoded features x: one object per target.
function predict(model, x, person = null) {
  return outcomesOf(model, scoresOf(model, x), person).map((outcome, task) => ({
    outcome,
    mean: outcome.mean(),
    atLower: outcome.atLower(),
    atUpper: outcome.atUpper(),
    intervals: model.ends.map(([low, high]) => outcome.interval(low[task], high[task], model.calibrated)),
  }));
}

// How far x is from the centre of the data; see FeatureRanges.distance.
function distanceOf(ranges, x) {
  let used = 0, squares = 0, total = 0, along = 0;
  const z = x.map((value, place) => {
    const scale = ranges.scale.values[place];
    if (!(scale > 0)) return 0;
    used += 1;
    return (value - ranges.centre.values[place]) / scale;
  });
  for (const value of z) squares += value * value;
  ranges.variances.forEach((variance, row) => {
    let dot = 0;
    for (let place = 0; place < z.length; place++) dot += ranges.directions.values[row * z.length + place] * z[place];
    along += dot * dot;
    total += dot * dot / variance;
  });
  if (ranges.rest > 0) total += Math.max(squares - along, 0) / ranges.rest;
  return Math.sqrt(total / Math.max(used, 1));
}
