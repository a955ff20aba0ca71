import { Failure } from '../shared/failure.ts';
import type { JsonObject } from '../shared/json.ts';

/** What can be asked of a user, however a wallet's draft calls it. */
export type InteractionKind = 'presentation' | 'web';

/**
 * The draft has changed its names three times; they are told apart by how they begin: without any prefix, with
 * `urn:openid:dcp:iae:`, and with `urn:openid:dcp:ia:` (OpenID4VCI 1.1 section 6).
 */
export type InteractionWire = 'plain' | 'iae' | 'ia';

type Names = {
  readonly types: Readonly<Record<InteractionKind, string>>;
  readonly responseMode: string;
  readonly sessionError: 'invalid_session' | 'invalid_request';
};

/** The newest first. */
const WIRES: Readonly<Record<InteractionWire, Names>> = {
  ia: {
    types: { presentation: 'urn:openid:dcp:ia:openid4vp_presentation', web: 'urn:openid:dcp:ia:auth_via_web' },
    responseMode: 'ia_post',
    sessionError: 'invalid_session',
  },
  iae: {
    types: { presentation: 'urn:openid:dcp:iae:openid4vp_presentation', web: 'urn:openid:dcp:iae:redirect_to_web' },
    responseMode: 'iae_post',
    sessionError: 'invalid_request',
  },
  plain: {
    types: { presentation: 'openid4vp_presentation', web: 'redirect_to_web' },
    responseMode: 'iae_post',
    sessionError: 'invalid_request',
  },
};
const NEWEST_FIRST = Object.keys(WIRES) as InteractionWire[];

const MAX_TYPES_LENGTH = 2000;

/**
 * Values of `interaction_types_supported`, in any order; what nobody knows is nothing to worry about.
 * @throws Failure `invalid_request` when there are none (OpenID4VCI 1.1 section 6.1.1).
 */
export function parseInteractionTypes(text: string | undefined): ReadonlySet<string> {
  const types = (text ?? '').split(',').map((type) => type.trim());
  const listed = new Set(types.filter((type) => type !== ''));
  if (listed.size === 0 || (text ?? '').length > MAX_TYPES_LENGTH) {
    throw new Failure('invalid_request', 'interaction_types_supported must list what the wallet can do');
  }
  return listed;
}

export function listsWeb(types: ReadonlySet<string>): boolean {
  return NEWEST_FIRST.some((wire) => types.has(WIRES[wire].types.web));
}

/**
 * The newest names among the wallet's that say all that is needed.
 * @throws Failure `missing_interaction_type` (OpenID4VCI 1.1 section 6.2.2).
 */
export function chooseWire(types: ReadonlySet<string>, needed: readonly InteractionKind[]): InteractionWire {
  const known = NEWEST_FIRST.filter((wire) => Object.values(WIRES[wire].types).some((type) => types.has(type)));
  const fit = known.find((wire) => needed.every((kind) => types.has(WIRES[wire].types[kind])));
  if (fit !== undefined) return fit;
  const [newest = 'ia'] = known;
  if (needed.length === 0) return newest;
  const missing = needed.map((kind) => WIRES[newest].types[kind]).filter((type) => !types.has(type));
  throw new Failure('missing_interaction_type', `these credentials need a wallet that supports ${missing.join(' and ')}`);
}

/** OpenID4VCI 1.1 section 6.2.1.1: the second one is encrypted. */
export function responseModeOf(wire: InteractionWire, isEncrypted: boolean): string {
  return isEncrypted ? `${WIRES[wire].responseMode}.jwt` : WIRES[wire].responseMode;
}

/**
 * What a key binding JWT may name as its audience (OpenID4VCI 1.1 appendix A.3.5). The text says the origin, its
 * example the whole endpoint; the drafts before meant the origin.
 */
export function audiencesOf(wire: InteractionWire, endpoint: string): readonly string[] {
  const { origin } = new URL(endpoint);
  return wire === 'ia' ? [`ia:${origin}`, `ia:${endpoint}`] : [`iae:${origin}`];
}

/** For an `auth_session` that counts no more; without a wire for one that nobody knows. */
export function sessionFailure(wire: InteractionWire = 'ia'): Failure {
  return new Failure(WIRES[wire].sessionError, 'auth_session is unknown, expired or used');
}

export type WireAnswer = { readonly status: number; readonly body: JsonObject };

/** The answer that asks for something first (OpenID4VCI 1.1 section 6.2.1). @param details by the kind. */
export function interactionRequired(wire: InteractionWire, kind: InteractionKind, authSession: string, details: JsonObject): WireAnswer {
  const type = WIRES[wire].types[kind];
  const rest = { auth_session: authSession, ...details };
  if (wire !== 'ia') return { status: 200, body: { status: 'require_interaction', type, ...rest } };
  const body = { error: 'insufficient_authorization', interaction_type_required: type, ...rest };
  return { status: 401, body };
}

/** The answer that ends it well (OAuth 2.0 for First-Party Applications section 5.2.1). */
export function codeIssued(wire: InteractionWire, code: string): WireAnswer {
  return { status: 200, body: wire === 'ia' ? { authorization_code: code } : { status: 'ok', code } };
}
