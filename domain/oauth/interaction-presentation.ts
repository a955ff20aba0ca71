import { Failure } from '../shared/failure.ts';
import { type Json, type JsonObject, MAX_STRANGER_MEMBERS, parseJsonObject } from '../shared/json.ts';
import { type Asker, requestParameters } from '../verification/request-object.ts';
import type { PendingPresentation } from './interaction.ts';
import { type InteractionWire, responseModeOf } from './interaction-wire.ts';

/**
 * The parameters of `openid4vp_request` (OpenID4VCI 1.1 section 6.2.1.1): those of a request through the Digital
 * Credentials API, which has no addresses to answer to and no state.
 */
export function presentationParameters(
  wire: InteractionWire,
  pending: PendingPresentation,
  verifierInfo: readonly JsonObject[],
  asker: Asker,
  agreedOnly: boolean,
): JsonObject {
  const { nonce, dcqlQuery, encryption, transactionData } = pending;
  const responseMode = responseModeOf(wire, encryption !== undefined);
  const encryptionJwk = encryption?.publicJwk;
  return requestParameters({
    responseMode,
    nonce,
    dcqlQuery,
    encryptionJwk,
    transactionData,
    verifierInfo,
    asker,
    agreedOnly,
  });
}

/** What an `openid4vp_response` amounts to. */
export type PresentationAnswer =
  | { readonly kind: 'presentations'; readonly vpToken: Json }
  | { readonly kind: 'wallet_error'; readonly code: string };

const invalid = (message: string) => new Failure('invalid_request', message);

/**
 * Sorts an `openid4vp_response` before anything is decrypted.
 * @throws Failure `invalid_request` for what is no answer to the response mode that was asked for.
 */
export function parsePresentation(
  text: string,
  isEncrypted: boolean,
): PresentationAnswer | { readonly kind: 'encrypted'; readonly jwe: string } {
  const members = parseJsonObject(text, undefined, MAX_STRANGER_MEMBERS);
  if (members === undefined) throw invalid('openid4vp_response is not a JSON object');
  const { response } = members;
  if (response === undefined) {
    const answer = sortMembers(members);
    // OpenID4VCI 1.1 section 6.2.1.1; a wallet that cannot encrypt may still report an error
    if (isEncrypted && answer.kind === 'presentations') throw invalid('the response must be encrypted');
    return answer;
  }
  // OpenID4VP 1.0 section 8.3.1: `response` stands alone
  const isAlone = members['vp_token'] === undefined && members['error'] === undefined;
  if (!isEncrypted || !isAlone || typeof response !== 'string') {
    throw invalid('openid4vp_response does not have the form of the response mode');
  }
  return { kind: 'encrypted', jwe: response };
}

/** @param plaintext undefined when it could not be decrypted. @throws Failure `invalid_request`. */
export function parseDecrypted(plaintext: string | undefined): PresentationAnswer {
  const members = parseJsonObject(plaintext ?? '', undefined, MAX_STRANGER_MEMBERS);
  if (members === undefined) throw invalid('the response does not decrypt to a JSON object');
  return sortMembers(members);
}

const ERROR_CODE = /^[a-z_]{1,64}$/;

function sortMembers({ vp_token: vpToken, error }: JsonObject): PresentationAnswer {
  if ((vpToken === undefined) === (error === undefined)) throw invalid('send either vp_token or error');
  if (vpToken !== undefined) return { kind: 'presentations', vpToken };
  const code = typeof error === 'string' && ERROR_CODE.test(error) ? error : 'wallet_error';
  return { kind: 'wallet_error', code };
}
