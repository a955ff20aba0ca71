/** Preloaded into a process, of whose heap it holds so much. */
const MEBIBYTES = 68;
const ofOne = () => new Array(128 * 1024).fill(0.5);
export const held = Array.from({ length: MEBIBYTES }, ofOne);
globalThis.process.on('exit', () => held.length);
