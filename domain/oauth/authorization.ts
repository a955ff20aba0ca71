import { Failure } from '../shared/failure.ts';
import type { PublicId, SessionId } from '../shared/ids.ts';
import type { AuthorizationRequest } from './authorization-request.ts';
import type { AuthorizationServer, GrantHolder, Identity } from './grant.ts';
import { isSecret, parseHandle } from './handle.ts';
import type { Interaction } from './interaction.ts';

/** The purposes of handles that identify an authorization; each handle is replaced or dropped when the authorization advances. */
export type HandlePurpose = 'request_uri' | 'upstream' | 'confirmation' | 'auth_session' | 'page';

/** A pushed request must be opened within this time (RFC 9126 section 2.2). */
export const REQUEST_URI_LIFETIME_SECONDS = 60;
/** The time from the push to the code includes reading and logging in. */
export const AUTHORIZATION_LIFETIME_SECONDS = 1800;
export const REQUEST_URI_PREFIX = 'urn:ietf:params:oauth:request_uri:';

/** The login at the upstream provider during a chained authorization. */
export type UpstreamLeg = {
  /** Issuer and client as configured at the start: the code is sent to this provider only. */
  readonly issuer: string;
  readonly clientId: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  /** SHA-256 of the cookie of the browser that started it, base64url. */
  readonly browserHash: string;
};

/** Stages that can follow each stage; `done` ends an authorization, successful or not. */
export const NEXT_STAGES = {
  pushed: ['upstream', 'done'],
  /** A login may be restarted until it is finished. */
  upstream: ['upstream', 'confirming', 'done'],
  confirming: ['done'],
  /** Actions are performed one after the other. */
  interacting: ['interacting', 'done'],
  done: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;
export type AuthorizationStage = keyof typeof NEXT_STAGES;

/** The state of one authorization from its request to the code; sealed at rest. */
export type Authorization = {
  readonly id: string;
  readonly server: AuthorizationServer;
  /** Incremented by each step for optimistic locking; a step on an outdated version changes nothing. */
  readonly version: number;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly stage: AuthorizationStage;
  /** True after a browser opened the request URI in time; from then on `expiresAt` applies. */
  readonly isOpened?: boolean;
  readonly request: AuthorizationRequest;
  readonly holder: GrantHolder;
  /** The session of the offer; null when the wallet started without one. */
  readonly session: { readonly id: SessionId; readonly publicId: PublicId } | null;
  /** SHA-256 of the secrets of the current handles. */
  readonly handles: { readonly [purpose in HandlePurpose]?: string };
  /** Removed when the authorization ends. */
  readonly upstream?: UpstreamLeg;
  /** State of an interactive authorization. */
  readonly interaction?: Interaction;
  /** The user who logged in, while the user confirms the wallet; removed when the authorization ends. */
  readonly identity?: Identity;
};

/**
 * Advances `authorization` to `version + 1`. The stage `done` removes the data about user and login.
 * @throws Error for an invalid transition.
 */
export function advance(authorization: Authorization, change: Partial<Omit<Authorization, 'id' | 'version' | 'createdAt'>>): Authorization {
  const { stage } = change;
  const allowed: readonly string[] = NEXT_STAGES[authorization.stage];
  if (stage !== undefined && !allowed.includes(stage))
    throw new Error(`an authorization in the stage ${authorization.stage} cannot change to ${stage}`);
  const advanced = { ...authorization, ...change, version: authorization.version + 1 };
  if (advanced.stage !== 'done') return advanced;
  const { identity: _identity, upstream: _upstream, interaction, ...endedAuthorization } = advanced;
  return interaction === undefined ? endedAuthorization : { ...endedAuthorization, interaction: { ...interaction, presented: [] } };
}

/** True if a browser opened the current request URI in time; it may be opened again then. */
export function wasOpenedInBrowser({ isOpened, interaction }: Authorization): boolean {
  const pending = interaction?.pending;
  return isOpened === true || (pending?.kind === 'web' && pending.browserHash !== undefined);
}

/** Time at which the current request URI was issued. */
export function requestUriIssuedAt({ createdAt, interaction }: Authorization): Date {
  return interaction?.pending?.since ?? createdAt;
}

/** @returns true if `handle` is the current handle for this purpose and the authorization has not ended. */
export function isCurrentHandle(
  authorization: Authorization | undefined,
  purpose: HandlePurpose,
  handle: string,
  now: Date,
): authorization is Authorization {
  if (authorization === undefined || authorization.stage === 'done') return false;
  if (authorization.expiresAt <= now) return false;
  const parsedHandle = parseHandle(handle);
  return parsedHandle?.id === authorization.id && isSecret(parsedHandle.secret, authorization.handles[purpose]);
}

/** @throws Failure `invalid_request` for a text that is no request URI of this service. */
export function handleOfRequestUri(requestUri: string): string {
  if (!requestUri.startsWith(REQUEST_URI_PREFIX)) throw new Failure('invalid_request', 'the request_uri is unknown, expired or used');
  return requestUri.slice(REQUEST_URI_PREFIX.length);
}
