import type { Schemas } from './operations.ts';

/**
 * Error codes of the service, see docs/reference/errors.md, and of the connection: `unreachable`, `timeout`, and `unexpected_answer` for a
 * response that is not from Vidimus, such as the error page of a proxy.
 */
export type VidimusErrorCode = Schemas['Problem']['code'] | 'unreachable' | 'timeout' | 'unexpected_answer';

export type FieldFault = { readonly path: string; readonly message: string };

type VidimusErrorDetails = {
  /** Status of the response; absent without one. */
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly errors?: readonly FieldFault[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
};

/** The error of a failed call. It contains no token and no secret, so it can be logged. */
export class VidimusError extends Error {
  override readonly name = 'VidimusError';
  readonly code: VidimusErrorCode;
  /** Error message of the service. */
  readonly detail: string;
  readonly status: number | undefined;
  /** The id of the request in the service's log. */
  readonly requestId: string | undefined;
  /** Invalid fields of the request. */
  readonly errors: readonly FieldFault[];
  readonly retryAfterSeconds: number | undefined;

  constructor(code: VidimusErrorCode, detail: string, details: VidimusErrorDetails = {}) {
    const { status, requestId, errors = [], retryAfterSeconds, cause } = details;
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

/** Parses an error response of the administrative interface (RFC 9457) or the token endpoint (RFC 6749 section 5.2). */
export function errorOf(response: Response, text: string): VidimusError {
  const { status, headers } = response;
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN);
  const body = objectOf(text);
  const code = body['code'] ?? body['error'];
  const details = {
    status,
    requestId: textOf(body['requestId']) ?? headers.get('x-request-id') ?? undefined,
    errors: Array.isArray(body['errors']) ? (body['errors'] as FieldFault[]) : undefined,
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
  };
  if (typeof code !== 'string') return new VidimusError('unexpected_answer', `HTTP ${status}`, details);
  const detail = textOf(body['detail']) ?? textOf(body['error_description']) ?? `HTTP ${status}`;
  return new VidimusError(code as VidimusErrorCode, detail, details);
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
