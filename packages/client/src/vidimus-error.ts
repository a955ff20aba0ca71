import type { Schemas } from './operations.ts';

/**
 * Codes of the service, as docs/troubleshooting.md explains them, and what happens on the way to it: `unreachable`,
 * `timeout`, and `unexpected_answer` of something that is no Vidimus, such as the error page of a proxy.
 */
export type VidimusErrorCode = Schemas['Problem']['code'] | 'unreachable' | 'timeout' | 'unexpected_answer';

export type FieldFault = { readonly path: string; readonly message: string };

type Told = {
  /** Of the answer; absent when there was none. */
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly errors?: readonly FieldFault[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
};

/** Why a call failed. Holds no token and no secret, so it can be logged. */
export class VidimusError extends Error {
  override readonly name = 'VidimusError';
  readonly code: VidimusErrorCode;
  /** What the service said, for people. */
  readonly detail: string;
  readonly status: number | undefined;
  /** The log of the service has the request under this id. */
  readonly requestId: string | undefined;
  /** Where the request was at fault. */
  readonly errors: readonly FieldFault[];
  readonly retryAfterSeconds: number | undefined;

  constructor(code: VidimusErrorCode, detail: string, told: Told = {}) {
    const { status, requestId, errors = [], retryAfterSeconds, cause } = told;
    const places = errors.map(({ path, message }) => `; ${path}: ${message}`).join('');
    super(`${code}: ${detail}${places}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.detail = detail;
    this.status = status;
    this.requestId = requestId;
    this.errors = errors;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Reads what the administrative interface (RFC 9457) or the token endpoint (RFC 6749 section 5.2) refuses with. */
export function errorOf(response: Response, text: string): VidimusError {
  const { status, headers } = response;
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN);
  const body = objectOf(text);
  const code = body['code'] ?? body['error'];
  const told = {
    status,
    requestId: textOf(body['requestId']) ?? headers.get('x-request-id') ?? undefined,
    errors: Array.isArray(body['errors']) ? (body['errors'] as FieldFault[]) : undefined,
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
  };
  if (typeof code !== 'string') return new VidimusError('unexpected_answer', `HTTP ${status}`, told);
  const detail = textOf(body['detail']) ?? textOf(body['error_description']) ?? `HTTP ${status}`;
  return new VidimusError(code as VidimusErrorCode, detail, told);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function objectOf(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return {};
  }
}
