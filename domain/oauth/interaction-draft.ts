import { Failure } from '../shared/failure.ts';
import type { JsonObject } from '../shared/json.ts';

/** The kinds of interaction, independent of their names in the drafts. */
export type InteractionKind = 'presentation' | 'web';

/**
 * The draft changed its names three times. The versions differ by prefix: none, `urn:openid:dcp:iae:`, and `urn:openid:dcp:ia:` (OpenID4VCI
 * 1.1 section 6).
 */
export type InteractionDraft = 'plain' | 'iae' | 'ia';

type Names = {
  readonly types: Readonly<Record<InteractionKind, string>>;
  readonly responseMode: string;
  readonly sessionError: 'invalid_session' | 'invalid_request';
};

/** Sorted from newest to oldest. */
const DRAFTS: Readonly<Record<InteractionDraft, Names>> = {
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
const NEWEST_FIRST = Object.keys(DRAFTS) as InteractionDraft[];

const MAX_TYPES_LENGTH = 2000;

/**
 * Parses `interaction_types_supported`, in any order; unknown values are ignored later.
 * @throws Failure `invalid_request` for an empty list (OpenID4VCI 1.1 section 6.1.1).
 */
export function parseInteractionTypes(text: string | undefined): ReadonlySet<string> {
  const types = (text ?? '').split(',').map((type) => type.trim());
  const supportedTypes = new Set(types.filter((type) => type !== ''));
  if (supportedTypes.size === 0 || (text ?? '').length > MAX_TYPES_LENGTH) {
    throw new Failure('invalid_request', 'interaction_types_supported must list the interaction types of the wallet');
  }
  return supportedTypes;
}

export function supportsWeb(types: ReadonlySet<string>): boolean {
  return NEWEST_FIRST.some((draft) => types.has(DRAFTS[draft].types.web));
}

/**
 * The newest version of the names in which the wallet supports every needed kind.
 * @throws Failure `missing_interaction_type` (OpenID4VCI 1.1 section 6.2.2).
 */
export function chooseDraft(types: ReadonlySet<string>, needed: readonly InteractionKind[]): InteractionDraft {
  const supportedDrafts = NEWEST_FIRST.filter((draft) => Object.values(DRAFTS[draft].types).some((type) => types.has(type)));
  const match = supportedDrafts.find((draft) => needed.every((kind) => types.has(DRAFTS[draft].types[kind])));
  if (match !== undefined) return match;
  const [newest = 'ia'] = supportedDrafts;
  if (needed.length === 0) return newest;
  const missingTypes = needed.map((kind) => DRAFTS[newest].types[kind]).filter((type) => !types.has(type));
  throw new Failure('missing_interaction_type', `these credentials require a wallet that supports ${missingTypes.join(' and ')}`);
}

/** OpenID4VCI 1.1 section 6.2.1.1: `.jwt` is the encrypted mode. */
export function responseModeOf(draft: InteractionDraft, isEncrypted: boolean): string {
  return isEncrypted ? `${DRAFTS[draft].responseMode}.jwt` : DRAFTS[draft].responseMode;
}

/**
 * Accepted audiences of a key binding JWT (OpenID4VCI 1.1 appendix A.3.5). The text of the draft says the origin, its example shows the
 * whole endpoint; earlier drafts used the origin.
 */
export function audiencesOf(draft: InteractionDraft, endpoint: string): readonly string[] {
  const { origin } = new URL(endpoint);
  return draft === 'ia' ? [`ia:${origin}`, `ia:${endpoint}`] : [`iae:${origin}`];
}

/** The error for an invalid `auth_session`; `draft` is absent for an unknown one. */
export function sessionFailure(draft: InteractionDraft = 'ia'): Failure {
  return new Failure(DRAFTS[draft].sessionError, 'auth_session is unknown, expired or used');
}

export type InteractionResponse = { readonly status: number; readonly body: JsonObject };

/** The response that demands an interaction (OpenID4VCI 1.1 section 6.2.1). @param details by the kind. */
export function interactionResponse(
  draft: InteractionDraft,
  kind: InteractionKind,
  authSession: string,
  details: JsonObject,
): InteractionResponse {
  const type = DRAFTS[draft].types[kind];
  const parameters = { auth_session: authSession, ...details };
  if (draft !== 'ia') return { status: 200, body: { status: 'require_interaction', type, ...parameters } };
  const body = { error: 'insufficient_authorization', interaction_type_required: type, ...parameters };
  return { status: 401, body };
}

/** The final response with the code (OAuth 2.0 for First-Party Applications section 5.2.1). */
export function codeResponse(draft: InteractionDraft, code: string): InteractionResponse {
  return { status: 200, body: draft === 'ia' ? { authorization_code: code } : { status: 'ok', code } };
}
