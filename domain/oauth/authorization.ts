import { Failure } from '../shared/failure.ts';
import type { PublicId, SessionId } from '../shared/ids.ts';
import type { AuthorizationRequest } from './authorization-request.ts';
import type { AuthorizationServer, GrantHolder, Identity } from './grant.ts';
import { isSecret, parseHandle } from './handle.ts';
import type { Interaction } from './interaction.ts';

/** The handles by which an authorization can be found; each is replaced or dropped as it moves on. */
export type HandlePurpose = 'request_uri' | 'upstream' | 'confirmation' | 'auth_session' | 'page';

/** Seconds in which a pushed request has to be opened first (RFC 9126 section 2.2). */
export const REQUEST_URI_LIFETIME_SECONDS = 60;
/** Seconds from the push to the code; users read, log in and think. */
export const AUTHORIZATION_LIFETIME_SECONDS = 1800;
export const REQUEST_URI_PREFIX = 'urn:ietf:params:oauth:request_uri:';

/** The leg of the chained authorization server to the provider where the user logs in. */
export type UpstreamLeg = {
  /** Issuer and client as they were configured at the start: a code goes to nobody else. */
  readonly issuer: string;
  readonly clientId: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  /** SHA-256 of the cookie of the browser that started it, base64url. */
  readonly browserHash: string;
};

/** The stages that can follow each; `done` ends an authorization, whatever came of it. */
export const NEXT_STAGES = {
  pushed: ['upstream', 'done'],
  /** A login may be begun again until it is finished. */
  upstream: ['upstream', 'confirming', 'done'],
  confirming: ['done'],
  /** One action after the other. */
  interacting: ['interacting', 'done'],
  done: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;
export type AuthorizationStage = keyof typeof NEXT_STAGES;

/** One run from an authorization request to a code. What is in it is sealed at rest. */
export type Authorization = {
  readonly id: string;
  readonly server: AuthorizationServer;
  /** Raised by each step; a step that another one overtook changes nothing. */
  readonly version: number;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly stage: AuthorizationStage;
  /** Whether a browser came with the request URI in time; from then on the authorization's own end counts. */
  readonly isOpened?: boolean;
  readonly request: AuthorizationRequest;
  readonly holder: GrantHolder;
  /** The session of the offer; null when the wallet began by itself. */
  readonly session: { readonly id: SessionId; readonly publicId: PublicId } | null;
  /** SHA-256 of the secrets of the present handles. */
  readonly handles: { readonly [purpose in HandlePurpose]?: string };
  /** Until the authorization ends. */
  readonly upstream?: UpstreamLeg;
  /** Of an interactive authorization: where it stands. */
  readonly interaction?: Interaction;
  /** Who logged in, while the user is asked about the wallet; nobody needs it here after the end. */
  readonly identity?: Identity;
};

/**
 * A step of `authorization` at `version + 1`. What is known of the user and of the login ends with `done`.
 * @throws Error for a stage that cannot follow.
 */
export function moveOn(authorization: Authorization, change: Partial<Omit<Authorization, 'id' | 'version' | 'createdAt'>>): Authorization {
  const { stage } = change;
  const allowed: readonly string[] = NEXT_STAGES[authorization.stage];
  if (stage !== undefined && !allowed.includes(stage))
    throw new Error(`an authorization that is ${authorization.stage} does not become ${stage}`);
  const next = { ...authorization, ...change, version: authorization.version + 1 };
  if (next.stage !== 'done') return next;
  const { identity: _identity, upstream: _upstream, interaction, ...ended } = next;
  return interaction === undefined ? ended : { ...ended, interaction: { ...interaction, presented: [] } };
}

/** Whether a browser came with the present request URI: who was in time may look again. */
export function wasOpened({ isOpened, interaction }: Authorization): boolean {
  const pending = interaction?.pending;
  return isOpened === true || (pending?.kind === 'web' && pending.browserHash !== undefined);
}

/** When the present request URI was handed out. */
export function requestUriSince({ createdAt, interaction }: Authorization): Date {
  return interaction?.pending?.since ?? createdAt;
}

/** @returns whether `handle` is the present handle of this purpose, and the authorization is not over. */
export function isCurrent(
  authorization: Authorization | undefined,
  purpose: HandlePurpose,
  handle: string,
  now: Date,
): authorization is Authorization {
  if (authorization === undefined || authorization.stage === 'done') return false;
  if (authorization.expiresAt <= now) return false;
  const read = parseHandle(handle);
  return read?.id === authorization.id && isSecret(read.secret, authorization.handles[purpose]);
}

/** @throws Failure `invalid_request` for anything that does not look like a request URI of this service. */
export function handleOfRequestUri(requestUri: string): string {
  if (!requestUri.startsWith(REQUEST_URI_PREFIX)) throw new Failure('invalid_request', 'the request_uri is unknown, expired or used');
  return requestUri.slice(REQUEST_URI_PREFIX.length);
}
