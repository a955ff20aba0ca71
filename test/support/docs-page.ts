import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';

/** A request that a page shows: the line above the JSON, and the JSON. */
export type PageRequest = { readonly method: string; readonly path: string; readonly text: string };
export type DocsPage = { readonly text: string; readonly requests: readonly PageRequest[] };

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\\n/g;

/** A page of `docs/`, on which every JSON is the body of a request. @param least requests that it has. */
export function readPage(name: string, least = 3): DocsPage {
  const text = readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
  const all = [...text.matchAll(/^`(POST|PATCH|PUT) (\/\S+)`\n```json\n([\s\S]*?)\n```$/gm)];
  const requests = all.map(([, method = '', path = '', body = '']) => ({ method, path, text: body }));
  expect(requests, `${name}: requests among all JSON`)
    .to.have.length([...text.matchAll(/^```json$/gm)].length)
    .and.length.at.least(least);
  return { text, requests };
}

/** What stands in the blocks of a language, in their order. */
export function blocksOf({ text }: DocsPage, language: string): readonly string[] {
  return [...text.matchAll(/^```(\S+)\n([\s\S]*?)\n```$/gm)].flatMap(([, of, block = '']) =>
    of === language ? [block] : [],
  );
}

/** @param pem takes the place of the certificates that the page only hints at. */
export function withCertificate(text: string, pem: string): string {
  return text.replace(CERTIFICATE, JSON.stringify(pem).slice(1, -1));
}

export function expectNamed({ text }: DocsPage, members: readonly string[]): void {
  for (const member of members) expect(text, member).to.match(new RegExp(`["\`]${member}["\`]`));
}

/** Runs a backend of a page as a process of its own; it listens at the port when this resolves. */
export async function startScript(
  code: string,
  port: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<ChildProcess> {
  const started = spawn(process.execPath, ['--input-type=module'], {
    stdio: ['pipe', 'ignore', 'inherit'],
    env: { ...process.env, ...environment },
  });
  started.stdin?.end(code.replace('8080', String(port)));
  while (!(await isListening(port))) {
    if (started.exitCode !== null) throw new Error('a script of the page does not run');
    await setTimeout(20);
  }
  return started;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
