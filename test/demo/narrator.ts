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

export function done(text: string): void {
  console.log(`\n${styleText(['bold', 'green'], text)}\n`);
}
