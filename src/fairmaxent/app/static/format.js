// Numbers as people read them.

export const whole = (value) => Math.round(value).toLocaleString("en-GB");
export const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)}\u00a0%`);
export const rate = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
export const times = (value) =>
  value === null || value === undefined ? "–" : value >= 100 ? whole(value) : value.toFixed(1);
export const signed = (value) => {
  const size = whole(Math.abs(value));
  return size === "0" ? "0" : `${value > 0 ? "+" : "−"}${size}`;
};
export const duration = (seconds) => {
  if (seconds >= 60) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return seconds >= 1 ? `${seconds.toFixed(1)} s` : `${Math.max(1, Math.round(1000 * seconds))} ms`;
};
export const size = (bytes) =>
  bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : bytes >= 1e3 ? `${(bytes / 1e3).toFixed(1)} kB` : `${bytes} bytes`;

export const KINDS = { representation_rate: "Equal group sizes", statistical_rate: "Equal outcomes" };

// From one number to another; if they look the same, one of them.
export const span = (low, high, show = rate) => (show(low) === show(high) ? show(low) : `${show(low)} to ${show(high)}`);

// The library advises to merge groups or levels, which cannot be done on the page.
const MERGING = "To merge groups or levels, give them the same name in the file, and open it again.";
export const withMerging = (texts) => (texts.some((text) => /\bmerge\b/i.test(text)) ? [...texts, MERGING] : texts);
