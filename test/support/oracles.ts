import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** An mdoc as an independent library parses it; bytes are base64url. */
export type ReadMdoc = {
  readonly docType: string;
  readonly elements: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly deviceKey: Readonly<Record<string, string>>;
  /** Number of passed checks. */
  readonly checks: number;
};

/** The claims that a library read, or the reason of its rejection. */
export type OracleVerdict =
  | { readonly claims: Readonly<Record<string, unknown>>; readonly refused?: undefined }
  | { readonly claims?: undefined; readonly refused: string };

/** Independent libraries that verify credentials. @throws Error when they reject the input. */
export type Oracles = {
  /** Many presentations at once; anchors are DER in standard base64, `lists` are status list tokens by address. */
  judgeSdJwtVcs(
    texts: readonly string[],
    expected: {
      readonly anchors: readonly string[];
      readonly nonce: string;
      readonly seconds: number;
      readonly lists: Readonly<Record<string, string>>;
    },
  ): Promise<readonly OracleVerdict[]>;
  /** Many DeviceResponses at once; `transcript` is the SessionTranscript in base64url. */
  judgeMdocs(
    texts: readonly string[],
    expected: { readonly anchors: readonly string[]; readonly transcript: string; readonly seconds: number },
  ): Promise<readonly OracleVerdict[]>;
  readMdoc(text: string, anchors: readonly string[]): Promise<ReadMdoc>;
  readSdJwtVc(text: string, anchor: string): Promise<Readonly<Record<string, unknown>>>;
};

const folder = new URL('../oracles/', import.meta.url);

/**
 * The libraries have their own lockfile, since the service shares no code with them.
 * @returns undefined when they are not installed, which throws when no test may be skipped.
 */
export function loadOracles(): Oracles | undefined {
  if (existsSync(new URL('node_modules', folder))) {
    return {
      judgeSdJwtVcs: (...parameters) => callOracle('judgeSdJwtVcs', parameters) as ReturnType<Oracles['judgeSdJwtVcs']>,
      judgeMdocs: (...parameters) => callOracle('judgeMdocs', parameters) as ReturnType<Oracles['judgeMdocs']>,
      readMdoc: (...parameters) => callOracle('readMdoc', parameters) as Promise<ReadMdoc>,
      readSdJwtVc: (...parameters) => callOracle('readSdJwtVc', parameters) as ReturnType<Oracles['readSdJwtVc']>,
    };
  }
  if (process.env['CI'] === 'true') throw new Error('install the oracles: npm ci --prefix test/oracles');
  console.log('      skipped: the oracles are not installed (npm ci --prefix test/oracles)');
  return undefined;
}

async function callOracle(name: string, parameters: readonly unknown[]): Promise<unknown> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('oracles.mjs', folder))], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify([name, ...parameters]));
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  const { value, error } = JSON.parse(Buffer.concat(chunks).toString()) as { value?: unknown; error?: string };
  if (error !== undefined) throw new Error(error);
  return value;
}
