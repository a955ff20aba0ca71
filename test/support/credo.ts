import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type CredoCredential = {
  readonly configurationId: string;
  readonly format: 'dc+sd-jwt' | 'mso_mdoc';
  /** Whether it could report on it. */
  readonly notified: boolean;
  /** As many as keys were proved. */
  readonly copies: number;
  readonly claims: Readonly<Record<string, unknown>>;
};

/** A link, or the data of a Digital Credentials API request and the origin of the page that makes it. */
export type CredoRequest = { readonly request: string | object; readonly origin?: string };

/** What the verifier answered, or what the page gets to hand to it. */
export type CredoResponse =
  | { readonly status: number; readonly body: unknown; readonly data?: undefined }
  | { readonly status?: undefined; readonly data: Readonly<Record<string, unknown>> };

type CredoOrder = {
  /** Absent: nothing is collected, unless by `renew`. */
  readonly offer?: string;
  readonly flow?: string;
  /** Of issuers and verifiers; DER in standard base64. */
  readonly anchors: readonly string[];
  /** What is presented afterwards, in this order. */
  readonly requests?: readonly CredoRequest[];
  /** Names a wallet that later orders go on with. */
  readonly wallet?: string;
  readonly txCode?: string;
  /** Keys of each credential. */
  readonly batch?: number;
  /** Collects again by the refresh token. */
  readonly renew?: boolean;
  /** Attests the wallet; the private key as a JWK, the certificate as DER in standard base64. */
  readonly provider?: { readonly clientId: string; readonly key: object; readonly certificate: string };
};

type CredoOrderResult = { readonly credentials: readonly CredoCredential[]; readonly presented: readonly CredoResponse[] };

const folder = new URL('../wallets/credo/', import.meta.url);
/** Begins the lines of the process that are answers. */
const ANSWER = 'answer ';

/** Second wallets, a new one for each order, in a process of their own: to load them takes longer than all that they do. */
export type CredoWallets = { serve(order: CredoOrder): Promise<CredoOrderResult>; close(): Promise<void> };

/** @returns undefined where it is not installed; where nothing may be skipped that is an error. */
export function findCredoWallets(): CredoWallets | undefined {
  if (existsSync(new URL('node_modules', folder))) return start();
  if (process.env['CI'] === 'true') throw new Error('install the second wallet: npm ci --prefix test/wallets/credo');
  console.log('      skipped: the second wallet is not installed (npm ci --prefix test/wallets/credo)');
  return undefined;
}

function start(): CredoWallets {
  const child = spawn(process.execPath, [fileURLToPath(new URL('wallet.mjs', folder))], { stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async serve(order) {
      child.stdin.write(`${JSON.stringify(order)}\n`);
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error('the second wallet ended');
        // Libraries may write lines of their own.
        if (!value.startsWith(ANSWER)) continue;
        const answer = JSON.parse(value.slice(ANSWER.length)) as CredoOrderResult | { readonly error: string };
        if ('error' in answer) throw new Error(answer.error);
        return answer;
      }
    },
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}
