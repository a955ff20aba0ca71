import { errorOf, VidimusError } from './vidimus-error.ts';

export type Fetch = (address: string, init: RequestInit) => Promise<Response>;

export type Call = {
  readonly fetch: Fetch;
  readonly address: string;
  readonly init: RequestInit;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
};

/** Exceeds the longest page of a list. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export type TextResponse = { readonly response: Response; readonly text: string };

/** Sends a request and reads the complete response. @throws VidimusError for a failure; the reason of `signal` when it was aborted. */
export async function send({ fetch, address, init, signal, timeoutMs }: Call): Promise<TextResponse> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const combinedSignal = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  try {
    // A redirect would send the token, and a secret in the body, to an address that is not configured.
    const response = await fetch(address, { ...init, redirect: 'error', signal: combinedSignal });
    const text = await readText(response, MAX_ANSWER_BYTES);
    if (!response.ok) throw errorOf(response, text);
    return { response, text };
  } catch (error) {
    throw failureOf(error, { address, signal, deadline });
  }
}

/** Opens a streaming response, which lasts until `signal` aborts it. */
export async function open({ fetch, address, init, signal, timeoutMs }: Call): Promise<Response> {
  const timeoutController = new AbortController();
  const timer = setTimeout(() => timeoutController.abort(), timeoutMs);
  const combinedSignal = signal === undefined ? timeoutController.signal : AbortSignal.any([signal, timeoutController.signal]);
  try {
    const response = await fetch(address, { ...init, redirect: 'error', signal: combinedSignal });
    if (!response.ok) throw errorOf(response, await readText(response, MAX_ANSWER_BYTES));
    return response;
  } catch (error) {
    throw failureOf(error, { address, signal, deadline: timeoutController.signal });
  } finally {
    clearTimeout(timer);
  }
}

type FetchContext = { readonly address: string; readonly signal: AbortSignal | undefined; readonly deadline?: AbortSignal };

/** Maps an error of the platform to the error for the caller. */
export function failureOf(cause: unknown, { address, signal, deadline }: FetchContext): unknown {
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
