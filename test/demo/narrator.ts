import { styleText } from 'node:util';

/** Prints what happens in words that a newcomer follows. */
export function headline(text: string): void {
  console.log(`\n${styleText('bold', text)}`);
}

export function step(text: string): void {
  console.log(`\n${styleText(['bold', 'cyan'], text)}`);
}

export function detail(label: string, text: string): void {
  console.log(`  ${styleText('gray', `${label}:`)} ${text}`);
}

export function fact(label: string, text: string): void {
  console.log(`  ${styleText('green', `${label}:`)} ${text}`);
}

export function printDone(text: string): void {
  console.log(`\n${styleText(['bold', 'green'], text)}\n`);
}

/** Advice for errors. */
const ADVICE: readonly [RegExp, string][] = [
  [/^port \d+ is taken/, 'Another program listens there, perhaps a demo that was kept. End it, or set PORT.'],
  [/^the service did not start/, 'The lines above are what the service said. Run `npm ci`, then the demo again.'],
  [/Cannot find (package|module)/, 'Run `npm ci`, then the demo again.'],
  [/ENOSPC|EACCES|EROFS/, 'The demo keeps its data in a temporary folder: make room there, or name another by TMPDIR.'],
  [/fetch failed|ECONNREFUSED|ECONNRESET/, 'The service, or what runs beside it, ended or cannot be reached on this machine.'],
];
const OTHERWISE =
  'Run it again. If it fails again, something is wrong with this version: report the line above with what was printed before it.';

/** A failure without its stack: what happened, and what to do. */
export function explain(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  const reason = cause instanceof Error ? `${message} (${cause.message})` : message;
  const [, advice = OTHERWISE] = ADVICE.find(([pattern]) => pattern.test(reason)) ?? [];
  return `The demo failed: ${reason.trim()}\nWhat to do: ${advice}`;
}
