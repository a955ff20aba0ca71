import { signal } from '@preact/signals';
import { withoutSecrets } from '../parts/secret.ts';

/** A call as it was made, so that a person can make it from a terminal or a program. */
export type RecordedCall = {
  readonly method: string;
  readonly address: string;
  readonly body: unknown;
  readonly isAuthorized: boolean;
  readonly status: number;
  readonly ms: number;
};

const MOST = 60;
const SECRET = /secret|password|token|ticket|privateKey|pin$/i;

export const made = signal<readonly RecordedCall[]>([]);

export function note(asked: RecordedCall): void {
  const call = { ...asked, address: withoutSecrets(asked.address) };
  const others = made.value.filter((recordedCall) => call.method !== 'GET' || !isSame(recordedCall, call));
  made.value = [{ ...call, body: masked(call.body) }, ...others].slice(0, MOST);
}

const isSame = (call: RecordedCall, otherCall: RecordedCall) =>
  call.method === otherCall.method && call.address === otherCall.address && call.status === otherCall.status;

function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== 'object' || value === null) return value;
  // The key of a webhook is called like many things that are none.
  const isKey = 'headerName' in value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      (SECRET.test(name) || (isKey && name === 'value')) && typeof inner === 'string' ? '…' : masked(inner),
    ]),
  );
}

export function asCurl({ method, address, body, isAuthorized }: RecordedCall, origin: string): string {
  const parts = [`curl -sS${method === 'GET' ? '' : ` -X ${method}`} ${quoted(origin + address)}`];
  if (isAuthorized) parts.push(`-H "Authorization: Bearer $TOKEN"`);
  if (body !== undefined) {
    parts.push("-H 'Content-Type: application/json'");
    parts.push(`-d ${quoted(JSON.stringify(body))}`);
  }
  return parts.join(' \\\n  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export function asTypeScript({ method, address, body, isAuthorized }: RecordedCall, origin: string): string {
  const lines = [`const answer = await fetch(${JSON.stringify(origin + address)}, {`];
  if (method !== 'GET') lines.push(`  method: '${method}',`);
  const headers = [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a part of the program that is copied
    ...(isAuthorized ? ['Authorization: `Bearer ${token}`'] : []),
    ...(body === undefined ? [] : ["'Content-Type': 'application/json'"]),
  ];
  if (headers.length > 0) lines.push(`  headers: { ${headers.join(', ')} },`);
  if (body !== undefined) lines.push(`  body: JSON.stringify(${JSON.stringify(body)}),`);
  lines.push('});', 'const result = await answer.json();');
  return lines.join('\n');
}
