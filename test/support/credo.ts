import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type CredoCredential = {
  readonly configurationId: string;
  readonly format: 'dc+sd-jwt' | 'mso_mdoc';
  /** Whether the wallet could send a notification. */
  readonly notified: boolean;
  /** One copy for each proved key. */
  readonly copies: number;
  readonly claims: Readonly<Record<string, unknown>>;
};

/** A link, or the data of a Digital Credentials API request and the origin of the page that makes it. */
export type CredoRequest = { readonly request: string | object; readonly origin?: string };

/** The response of the verifier, or the data that the page passes to it. */
export type CredoResponse =
  | { readonly status: number; readonly body: unknown; readonly data?: undefined }
  | { readonly status?: undefined; readonly data: Readonly<Record<string, unknown>> };

type CredoOrder = {
  /** Absent: no credential is requested, unless by `renew`. */
  readonly offer?: string;
  readonly flow?: string;
  /** Trust anchors of issuers and verifiers; DER in standard base64. */
  readonly anchors: readonly string[];
  /** The requests that are answered afterwards, in this order. */
  readonly requests?: readonly CredoRequest[];
  /** Name of a wallet that later orders reuse. */
  readonly wallet?: string;
  readonly txCode?: string;
  /** Number of keys of each credential. */
  readonly batch?: number;
  /** Requests the credential again with the refresh token. */
  readonly renew?: boolean;
  /** Key of the wallet provider; the private key as a JWK, the certificate as DER in standard base64. */
  readonly provider?: { readonly clientId: string; readonly key: object; readonly certificate: string };
};

type CredoOrderResult = { readonly credentials: readonly CredoCredential[]; readonly presented: readonly CredoResponse[] };

const folder = new URL('../wallets/credo/', import.meta.url);
/** Prefix of the output lines that are results. */
const ANSWER = 'answer ';

/** Credo wallets, a new one for each order, in one separate process, since loading them takes longer than their work. */
export type CredoWallets = { serve(order: CredoOrder): Promise<CredoOrderResult>; close(): Promise<void> };

/** @returns undefined when Credo is not installed, which throws when no test may be skipped. */
export function findCredoWallets(): CredoWallets | undefined {
  if (existsSync(new URL('node_modules', folder))) return start();
  if (process.env['CI'] === 'true') throw new Error('install the second wallet: npm ci --prefix test/wallets/credo');
  console.log('      skipped: the second wallet is not installed (npm ci --prefix test/wallets/credo)');
  return undefined;
}

function start(): CredoWallets {
  const child = spawn(process.execPath, [fileURLToPath(new URL('wallet.mjs', folder))], { stdio: ['pipe', 'pipe', 'ignore'] });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async serve(order) {
      child.stdin.write(`${JSON.stringify(order)}\n`);
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error('the process of Credo ended');
        // Libraries may write lines of their own.
        if (!value.startsWith(ANSWER)) continue;
        const answer = JSON.parse(value.slice(ANSWER.length)) as CredoOrderResult | { readonly error: string };
        if ('error' in answer) throw new Error(answer.error);
        return answer;
      }
    },
    async close() {
      child.stdin.end();
      await exited;
    },
  };
}
