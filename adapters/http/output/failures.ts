import { defined } from '../../../domain/shared/defined.ts';
import { FAILURE_REFERENCE } from '../../../domain/shared/error-reference.ts';
import type { Failure, FailureCode, FieldError } from '../../../domain/shared/failure.ts';
import { PUBLISHED_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { errorPage } from '../pages/error-page.ts';
import { type BrandedReader, PAGE_TYPE } from '../pages/page.ts';
import type { Surface } from '../route.ts';

type Rendering = {
  readonly status: number;
  /** The `error` that wallets see, if it differs from the code: for all protocols, or for one. */
  readonly wallet?: string;
  readonly vci?: string;
  readonly oauth?: string;
  readonly vp?: string;
  /** Status and message for wallets and browsers, in place of those for backends. */
  readonly forWallets?: { readonly status: number; readonly message: string };
};

/** Codes for wallets whose request cannot be parsed. */
const UNREADABLE = { wallet: 'invalid_request', vci: 'invalid_credential_request' } as const;

/** A new failure code does not compile until it has a status here. Titles are in `domain/shared/error-reference.ts`. */
export const RENDERINGS = {
  invalid_input: { status: 400, ...UNREADABLE },
  unauthenticated: { status: 401, oauth: 'invalid_client' },
  forbidden: { status: 403, wallet: 'invalid_request' },
  not_found: { status: 404, wallet: 'invalid_request' },
  method_not_allowed: { status: 405, wallet: 'invalid_request' },
  conflict: { status: 409, vp: 'invalid_request' },
  session_quota_exceeded: {
    status: 409,
    wallet: 'temporarily_unavailable',
    forWallets: { status: 503, message: 'too many requests are in progress; try again later' },
  },
  gone: { status: 410, vp: 'invalid_request' },
  too_large: { status: 413, ...UNREADABLE },
  unsupported_media_type: { status: 415, ...UNREADABLE },
  too_many_requests: { status: 429, wallet: 'temporarily_unavailable' },
  unavailable: { status: 503, wallet: 'temporarily_unavailable' },
  invalid_request: { status: 400 },
  invalid_client: { status: 401 },
  invalid_grant: { status: 400 },
  unsupported_grant_type: { status: 400 },
  unauthorized_client: { status: 400 },
  unsupported_response_type: { status: 400 },
  request_not_supported: { status: 400 },
  invalid_target: { status: 400 },
  invalid_client_attestation: { status: 400 },
  use_attestation_challenge: { status: 400 },
  use_fresh_attestation: { status: 400 },
  invalid_scope: { status: 400 },
  invalid_authorization_details: { status: 400 },
  invalid_dpop_proof: { status: 400 },
  use_dpop_nonce: { status: 400 },
  missing_token: { status: 401, wallet: 'invalid_token' },
  invalid_token: { status: 401 },
  insufficient_scope: { status: 403 },
  missing_interaction_type: { status: 400 },
  redirect_to_web: { status: 400 },
  invalid_session: { status: 400 },
  access_denied: { status: 400 },
  invalid_credential_request: { status: 400 },
  unknown_credential_configuration: { status: 400 },
  unknown_credential_identifier: { status: 400 },
  invalid_proof: { status: 400 },
  invalid_nonce: { status: 400 },
  invalid_encryption_parameters: { status: 400 },
  credential_request_denied: { status: 400 },
  issuance_pending: { status: 400 },
  invalid_transaction_id: { status: 400 },
  invalid_notification_id: { status: 400 },
  invalid_notification_request: { status: 400 },
} as const satisfies Record<FailureCode, Rendering>;

export type Rendered = {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: unknown;
  readonly contentType: string;
};

/** Code of a failure that the caller did not cause. */
export const INTERNAL_ERROR = 'internal_error';

/** Reader of an error: programs get the error body of a surface, a person gets a page. */
export type Audience = { readonly surface: Surface; readonly reader?: BrandedReader | undefined };

export function renderFailure(failure: Failure, { surface, reader }: Audience, requestId: string): Rendered {
  const { code, details } = failure;
  const rendering: Rendering = RENDERINGS[code];
  const title = FAILURE_REFERENCE[code].meaning;
  const { errors, intervalSeconds, wayBack } = details;
  const forWallets = isForBackends(surface) ? undefined : rendering.forWallets;
  const message = forWallets?.message ?? details.message;
  const wallet = {
    error: rendering[surface as 'vci' | 'oauth' | 'vp'] ?? rendering.wallet ?? code,
    ...(message === undefined ? {} : { error_description: printable(message) }),
    ...(intervalSeconds === undefined ? {} : { interval: intervalSeconds }),
  };
  const status = statusOf(code, surface, rendering);
  const problem = { status, title, detail: message ?? title, code, errors, wallet, wayBack };
  const rendered = render(problem, surface, requestId, reader);
  return { ...rendered, headers: { ...rendered.headers, ...headersOf(failure, surface) } };
}

function headersOf(failure: Failure, surface: Surface): Record<string, string> {
  const { retryAfterSeconds, allow, dpopNonce, attestationChallenge } = failure.details;
  return defined({
    'Retry-After': retryAfterSeconds?.toString(),
    Allow: allow?.join(', '),
    'DPoP-Nonce': dpopNonce,
    'OAuth-Client-Attestation-Challenge': attestationChallenge,
    'WWW-Authenticate': challengeOf(failure, surface),
  }) as Record<string, string>;
}

/** Renders a fault of the service: the caller learns nothing but the id of the request. */
export function renderUnexpected({ surface, reader }: Audience, requestId: string): Rendered {
  const detail = `An unexpected error occurred${reader !== undefined ? '' : '; see the log for this request id'}.`;
  const problem = { status: 500, title: FAILURE_REFERENCE[INTERNAL_ERROR].meaning, detail, code: INTERNAL_ERROR };
  return render({ ...problem, wallet: { error: 'server_error' } }, surface, requestId, reader);
}

type Problem = {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly code: string;
  readonly errors?: readonly FieldError[] | undefined;
  /** Error body of the wallet protocols. */
  readonly wallet: object;
  readonly wayBack?: Failure['details']['wayBack'];
};

function render(
  { status, wallet, wayBack, ...problem }: Problem,
  surface: Surface,
  requestId: string,
  reader: BrandedReader | undefined,
): Rendered {
  const headers = { 'Cache-Control': 'no-store' };
  const { title, detail, code, errors } = problem;
  if (reader !== undefined) {
    const page = errorPage({ status, detail, requestId, wayBack }, reader);
    return { status, headers: { ...headers, ...page.headers }, contentType: PAGE_TYPE, body: page.text };
  }
  if (isForBackends(surface)) {
    // RFC 9457
    const body = { type: 'about:blank', title, status, detail, code, requestId, ...defined({ errors }) };
    return { status, headers, contentType: 'application/problem+json', body };
  }
  return { status, headers, contentType: 'application/json', body: wallet };
}

function statusOf(code: FailureCode, surface: Surface, rendering: Rendering): number {
  // RFC 9449 section 7.1: a protected resource answers a bad proof with 401, the authorization server with 400.
  if (surface === 'vci' && (code === 'invalid_dpop_proof' || code === 'use_dpop_nonce')) return 401;
  // OpenID4VCI 1.0 section 8.3.1.2 defines only 400 for a malformed request.
  if ((surface === 'vci' || surface === 'oauth') && code === 'unsupported_media_type') return 400;
  return isForBackends(surface) ? rendering.status : (rendering.forWallets?.status ?? rendering.status);
}

function isForBackends(surface: Surface): boolean {
  return surface === 'admin' || surface === 'document';
}

const ALGORITHMS = PUBLISHED_ALGORITHMS.join(' ');
const CHALLENGED: readonly FailureCode[] = ['invalid_token', 'invalid_dpop_proof', 'use_dpop_nonce', 'insufficient_scope'];

function challengeOf({ code, details }: Failure, surface: Surface): string | undefined {
  if (surface === 'admin') {
    if (code !== 'unauthenticated') return undefined;
    return 'Bearer realm="vidimus", error="invalid_token"';
  }
  // RFC 6749 section 5.2: a client that used the Authorization header gets the scheme.
  if (surface === 'oauth' && details.basic === true) return 'Basic realm="vidimus"';
  if (surface !== 'vci') return undefined;
  // RFC 6750 section 3.1: without a token, the challenge has no error code.
  const bearer = details.bearer === true;
  if (code === 'missing_token') return `DPoP algs="${ALGORITHMS}"${bearer ? ', Bearer' : ''}`;
  if (!CHALLENGED.includes(code)) return undefined;
  return `DPoP error="${code}", algs="${ALGORITHMS}"${bearer ? `, Bearer error="${code}"` : ''}`;
}

/** RFC 6749 section 5.2: `%x20-21 / %x23-5B / %x5D-7E`. */
export function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'").slice(0, 500);
}
