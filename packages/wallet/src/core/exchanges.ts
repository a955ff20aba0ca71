/** An HTTP exchange as text. */
export type Exchange = {
  readonly method: string;
  readonly url: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: string;
  /** Absent without a response; `error` contains the reason. */
  readonly status?: number;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly responseBody: string;
  readonly milliseconds: number;
  readonly error?: string;
};

export type Fetch = typeof globalThis.fetch;

/** The largest document of these protocols is a batch of credentials with large images. */
const MAX_BYTES = 20 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** Wraps `fetch` and passes each completed exchange to `onExchange`. */
export function observeFetch(fetch: Fetch, onExchange: (exchange: Exchange) => void): Fetch {
  return async (input, init) => {
    const request = new Request(input, { ...init, signal: init?.signal ?? AbortSignal.timeout(TIMEOUT_MS) });
    const requestBody = await request.clone().text();
    const sentRequest = { method: request.method, url: request.url, requestHeaders: Object.fromEntries(request.headers), requestBody };
    const start = performance.now();
    const milliseconds = () => Math.round(performance.now() - start);
    try {
      const answer = await fetch(request);
      const responseBody = await readText(answer);
      const responseHeaders = Object.fromEntries(answer.headers);
      const { status } = answer;
      onExchange({ ...sentRequest, status, responseHeaders, responseBody, milliseconds: milliseconds() });
      const hasNoBody = [204, 205, 304].includes(status);
      const body = hasNoBody ? null : withoutNotificationId(request.url, responseBody);
      return new Response(body, { status, headers: answer.headers });
    } catch (error) {
      const errorMessage = error instanceof Error ? error.message : String(error);
      onExchange({ ...sentRequest, responseHeaders: {}, responseBody: '', milliseconds: milliseconds(), error: errorMessage });
      throw error;
    }
  };
}

async function readText(answer: Response): Promise<string> {
  if (answer.body === null) return '';
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = answer.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.byteLength;
    if (size > MAX_BYTES) {
      await reader.cancel();
      throw new Error(`${answer.url} answers with more than ${MAX_BYTES} bytes`);
    }
    chunks.push(part.value);
  }
  return await new Blob(chunks as Uint8Array<ArrayBuffer>[]).text();
}

/**
 * Version 0.4.6 of @openid4vc treats a `notification_id` in a deferred response as an error, although OpenID4VCI 1.0 section 9.2 permits
 * it. It is removed.
 */
function withoutNotificationId(url: string, body: string): string {
  if (!/\/deferred/.test(new URL(url).pathname)) return body;
  try {
    const { notification_id: _unseen, ...remaining } = JSON.parse(body) as Record<string, unknown>;
    return JSON.stringify(remaining);
  } catch {
    return body;
  }
}
