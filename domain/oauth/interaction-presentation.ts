import { Failure } from '../shared/failure.ts';
import { type Json, type JsonObject, MAX_UNTRUSTED_PROPERTIES, parseJsonObject } from '../shared/json.ts';
import { requestParameters, type VerifierDisplay } from '../verification/request-object.ts';
import type { PendingPresentation } from './interaction.ts';
import { type InteractionDraft, responseModeOf } from './interaction-draft.ts';

/**
 * The parameters of `openid4vp_request` (OpenID4VCI 1.1 section 6.2.1.1). They equal those of a Digital Credentials API request, which has
 * no response address and no state.
 */
export function presentationParameters(
  draft: InteractionDraft,
  pending: PendingPresentation,
  verifierInfo: readonly JsonObject[],
  asker: VerifierDisplay,
  agreedOnly: boolean,
): JsonObject {
  const { nonce, dcqlQuery, encryption, transactionData } = pending;
  const responseMode = responseModeOf(draft, encryption !== undefined);
  const encryptionJwk = encryption?.publicJwk;
  return requestParameters({ responseMode, nonce, dcqlQuery, encryptionJwk, transactionData, verifierInfo, display: asker, agreedOnly });
}

/** The content of an `openid4vp_response`. */
export type PresentationAnswer =
  | { readonly kind: 'presentations'; readonly vpToken: Json }
  | { readonly kind: 'wallet_error'; readonly code: string };

const invalid = (message: string) => new Failure('invalid_request', message);

/**
 * Classifies an `openid4vp_response` before decryption.
 * @throws Failure `invalid_request` for a response that does not match the requested response mode.
 */
export function parsePresentation(
  text: string,
  isEncrypted: boolean,
): PresentationAnswer | { readonly kind: 'encrypted'; readonly jwe: string } {
  const members = parseJsonObject(text, undefined, MAX_UNTRUSTED_PROPERTIES);
  if (members === undefined) throw invalid('openid4vp_response is not a JSON object');
  const { response } = members;
  if (response === undefined) {
    const answer = classifyAnswer(members);
    // OpenID4VCI 1.1 section 6.2.1.1; a wallet that cannot encrypt may still report an error
    if (isEncrypted && answer.kind === 'presentations') throw invalid('the response must be encrypted');
    return answer;
  }
  // OpenID4VP 1.0 section 8.3.1: `response` is the only parameter
  const isAlone = members['vp_token'] === undefined && members['error'] === undefined;
  if (!isEncrypted || !isAlone || typeof response !== 'string') {
    throw invalid('openid4vp_response does not match the response mode');
  }
  return { kind: 'encrypted', jwe: response };
}

/** @param plaintext undefined after a decryption error. @throws Failure `invalid_request`. */
export function parseDecrypted(plaintext: string | undefined): PresentationAnswer {
  const members = parseJsonObject(plaintext ?? '', undefined, MAX_UNTRUSTED_PROPERTIES);
  if (members === undefined) throw invalid('the response does not decrypt to a JSON object');
  return classifyAnswer(members);
}

const ERROR_CODE = /^[a-z_]{1,64}$/;

function classifyAnswer({ vp_token: vpToken, error }: JsonObject): PresentationAnswer {
  if ((vpToken === undefined) === (error === undefined)) throw invalid('send either vp_token or error');
  if (vpToken !== undefined) return { kind: 'presentations', vpToken };
  const code = typeof error === 'string' && ERROR_CODE.test(error) ? error : 'wallet_error';
  return { kind: 'wallet_error', code };
}
