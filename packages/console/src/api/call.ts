import { note, type RecordedCall } from './made.ts';

export type Caller = { readonly token: string };

export type CallRequest = {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Stands in the list of calls in place of a body that holds values of a person. */
  readonly noted?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A refusal in the words of the service, with what it takes to find it in the log. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  /** All that the answer held: that of the health of a service is no problem document. */
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>, requestId: string) {
    const said = body['detail'] ?? body['error_description'] ?? body['title'] ?? body['error'];
    super(typeof said === 'string' ? said : `the service answered ${status}`);
    this.name = 'ApiFailure';
    this.status = status;
    this.body = body;
    this.code = String(body['code'] ?? body['error'] ?? status);
    this.requestId = requestId;
    this.errors = Array.isArray(body['errors']) ? (body['errors'] as ApiFailure['errors']) : [];
  }
}

export const BASE = document.getElementById('console')?.dataset['base'] ?? '';

/** One call of the interface. Every call that the console makes goes through here, and can be copied. */
export async function send(
  caller: Caller | undefined,
  method: Method,
  path: string,
  { query = {}, body, noted = body, headers = {}, signal }: CallRequest = {},
): Promise<Response> {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, String(value)]]));
  const search = new URLSearchParams(given).toString();
  const address = `${BASE}${path}${search === '' ? '' : `?${search}`}`;
  const began = performance.now();
  const made: Omit<RecordedCall, 'status' | 'ms'> = { method, address, body: noted, isAuthorized: caller !== undefined };
  try {
    const answer = await fetch(address, {
      method,
      credentials: 'omit',
      cache: 'no-store',
      headers: {
        Accept: 'application/json',
        ...(caller !== undefined && { Authorization: `Bearer ${caller.token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
    note({ ...made, status: answer.status, ms: performance.now() - began });
    if (!answer.ok) throw await failureOf(answer);
    return answer;
  } catch (error) {
    if (error instanceof TypeError) throw new Error('the service does not answer; is it still running?');
    throw error;
  }
}

/** @returns the body of the answer. @throws ApiFailure for a refusal. */
export async function ask<T>(caller: Caller | undefined, method: Method, path: string, asked?: CallRequest): Promise<T> {
  const answer = await send(caller, method, path, asked);
  const text = await answer.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

export type Page<T> = { readonly rows: readonly T[]; readonly next: string | undefined; readonly count: number | undefined };

/** One page of a list, and the cursor of the next one. */
export async function askPage<T>(
  caller: Caller,
  path: string,
  query: NonNullable<CallRequest['query']>,
  signal?: AbortSignal,
): Promise<Page<T>> {
  const answer = await send(caller, 'GET', path, { query, ...(signal && { signal }) });
  const link = /<([^>]+)>;\s*rel="next"/.exec(answer.headers.get('Link') ?? '')?.[1];
  const next = link === undefined ? undefined : (new URL(link).searchParams.get('cursor') ?? undefined);
  const count = answer.headers.get('X-Total-Count');
  return { rows: (await answer.json()) as T[], next, count: count === null ? undefined : Number(count) };
}

async function failureOf(answer: Response): Promise<ApiFailure> {
  const text = await answer.text();
  let body: Record<string, unknown> = {};
  try {
    body = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Something in front of the service answered in words of its own.
  }
  return new ApiFailure(answer.status, body, answer.headers.get('X-Request-Id') ?? '');
}
