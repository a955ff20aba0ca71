import { errorOf, VidimusError } from './vidimus-error.ts';

export type Fetch = (address: string, init: RequestInit) => Promise<Response>;

export type Call = {
  readonly fetch: Fetch;
  readonly address: string;
  readonly init: RequestInit;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
};

/** More than the longest page of a list has. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export type Got = { readonly response: Response; readonly text: string };

/** One request with its whole answer. @throws VidimusError when it failed; what the caller's `signal` says when it was aborted. */
export async function send({ fetch, address, init, signal, timeoutMs }: Call): Promise<Got> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  try {
    // A redirect would take the token, and the secret in the body, to an address that nobody configured.
    const response = await fetch(address, { ...init, redirect: 'error', signal: either });
    const text = await readText(response, MAX_ANSWER_BYTES);
    if (!response.ok) throw errorOf(response, text);
    return { response, text };
  } catch (error) {
    throw failureOf(error, { address, signal, deadline });
  }
}

/** One request with the beginning of its answer, which goes on until `signal` ends it. */
export async function open({ fetch, address, init, signal, timeoutMs }: Call): Promise<Response> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
  try {
    const response = await fetch(address, { ...init, redirect: 'error', signal: either });
    if (!response.ok) throw errorOf(response, await readText(response, MAX_ANSWER_BYTES));
    return response;
  } catch (error) {
    throw failureOf(error, { address, signal, deadline: late.signal });
  } finally {
    clearTimeout(timer);
  }
}

type Circumstances = {
  readonly address: string;
  readonly signal: AbortSignal | undefined;
  readonly deadline?: AbortSignal;
};

/** What a caller is told, of whatever the platform threw. */
export function failureOf(cause: unknown, { address, signal, deadline }: Circumstances): unknown {
  if (cause instanceof VidimusError) return cause;
  if (signal?.aborted) return signal.reason;
  const { origin } = new URL(address);
  if (deadline?.aborted) return new VidimusError('timeout', `${origin} did not answer in time`, { cause });
  return new VidimusError('unreachable', `${origin} cannot be reached`, { cause });
}

async function readText(response: Response, limit: number): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return '';
  const decoder = new TextDecoder();
  let [text, bytes] = ['', 0];
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes += part.value.byteLength;
    if (bytes > limit) {
      await reader.cancel();
      throw new VidimusError('unexpected_answer', `more than ${limit} bytes`, { status: response.status });
    }
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
}
