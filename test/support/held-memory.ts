/** Preloaded into a process to fill its heap. */
const MEBIBYTES = 68;
const allocateMebibyte = () => new Array(128 * 1024).fill(0.5);
export const retainedMemory = Array.from({ length: MEBIBYTES }, allocateMebibyte);
globalThis.process.on('exit', () => retainedMemory.length);
