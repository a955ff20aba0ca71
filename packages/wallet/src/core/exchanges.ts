/** What went over the wire, as text. */
export type Exchange = {
  readonly method: string;
  readonly url: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly requestBody: string;
  /** Absent where no answer came; `error` says why. */
  readonly status?: number;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly responseBody: string;
  readonly milliseconds: number;
  readonly error?: string;
};

export type Fetch = typeof globalThis.fetch;

/** A batch of credentials with large images is the largest document of these protocols. */
const MAX_BYTES = 20 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** Calls as `fetch` does, and tells `heard` of each call once it has ended. */
export function listening(fetch: Fetch, heard: (exchange: Exchange) => void): Fetch {
  return async (input, init) => {
    const request = new Request(input, { ...init, signal: init?.signal ?? AbortSignal.timeout(TIMEOUT_MS) });
    const requestBody = await request.clone().text();
    const sent = {
      method: request.method,
      url: request.url,
      requestHeaders: Object.fromEntries(request.headers),
      requestBody,
    };
    const start = performance.now();
    const milliseconds = () => Math.round(performance.now() - start);
    try {
      const answer = await fetch(request);
      const responseBody = await readText(answer);
      const responseHeaders = Object.fromEntries(answer.headers);
      const { status } = answer;
      heard({ ...sent, status, responseHeaders, responseBody, milliseconds: milliseconds() });
      const hasNoBody = [204, 205, 304].includes(status);
      const body = hasNoBody ? null : unnotified(request.url, responseBody);
      return new Response(body, { status, headers: answer.headers });
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      heard({ ...sent, responseHeaders: {}, responseBody: '', milliseconds: milliseconds(), error: said });
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
 * The releases in use (0.4.6 of @openid4vc) take a `notification_id` for a fault where deferred credentials come, which is where
 * OpenID4VCI 1.0 section 9.2 has it. They do not see it.
 */
function unnotified(url: string, body: string): string {
  if (!/\/deferred/.test(new URL(url).pathname)) return body;
  try {
    const { notification_id: _unseen, ...rest } = JSON.parse(body) as Record<string, unknown>;
    return JSON.stringify(rest);
  } catch {
    return body;
  }
}
