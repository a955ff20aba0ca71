import { Failure } from '../shared/failure.ts';
import { type Json, type JsonObject, MAX_UNTRUSTED_PROPERTIES, parseJson, parseJsonObject } from '../shared/json.ts';
import { Refusal } from '../shared/refusal.ts';
import { type SessionFailure, type SessionFailureCode, walletFailure } from '../shared/session-failure.ts';
import { offersOpenId4Vp } from './dc-api.ts';
import { parseSealedResponse, type SealedResponse, toVpToken } from './iso-mdoc/response.ts';
import type { DcApiVerification, IsoMdocRequest, PostedVerification } from './verification-request.ts';

/** Form fields of a response (OpenID4VP 1.0 sections 8.2, 8.3 and 8.5); others are ignored. */
export type ResponseForm = {
  readonly vp_token?: string | undefined;
  readonly response?: string | undefined;
  readonly state?: string | undefined;
  readonly error?: string | undefined;
  readonly error_description?: string | undefined;
};

/**
 * The content of a wallet's response. `refused` ends the session; errors that must not end it (an empty response, an unknown `state`) are
 * thrown and never become a value of this type.
 */
export type Envelope =
  | {
      readonly kind: 'presentations';
      readonly vpToken: Json;
      /** Absent for a response by OpenID4VP. */
      readonly isoMdoc?: IsoMdocRequest;
      /** The wallet used the link for another device, so its browser is not redirected. */
      readonly isCrossDevice?: true;
    }
  | { readonly kind: 'wallet_error'; readonly error: SessionFailure; readonly isCrossDevice?: true }
  | { readonly kind: 'refused'; readonly code: SessionFailureCode; readonly detail: string };

const UNDECRYPTED = 'decryption_failed';

export function isUndecrypted(envelope: Envelope): envelope is Extract<Envelope, { kind: 'refused' }> {
  return envelope.kind === 'refused' && envelope.code === UNDECRYPTED;
}

type PostContext = Pick<PostedVerification, 'state' | 'crossDeviceState' | 'responseMode'>;

/** True if `state` is one of the two states of a request. An absent `crossDeviceState` matches nothing. */
function isStateOf(state: unknown, { state: sameDevice, crossDeviceState }: PostContext): boolean {
  return typeof state === 'string' && (state === sameDevice || state === crossDeviceState);
}

/** Marks the response to the link for another device. */
function markCrossDevice(envelope: Envelope, state: unknown, { crossDeviceState }: PostContext): Envelope {
  const isCrossDevice = crossDeviceState !== undefined && state === crossDeviceState;
  return isCrossDevice && envelope.kind !== 'refused' ? { ...envelope, isCrossDevice } : envelope;
}

/** Plain parameters, or the parameter that must still be decrypted. */
export type ParsedForm =
  | Envelope
  | {
      readonly kind: 'encrypted';
      readonly jwe: string;
      /** The form parameter `state` beside `response`, which the encrypted `state` must equal. */
      readonly outerState?: string;
    }
  | { readonly kind: 'sealed'; readonly message: SealedResponse; readonly isoMdoc: IsoMdocRequest };

/**
 * Classifies the fields of a response before decryption.
 * @throws Failure `invalid_request` when the session must not change.
 */
export function parseForm(form: ResponseForm, request: PostContext): ParsedForm {
  const { vp_token, response, error } = form;
  if (vp_token === undefined && response === undefined && error === undefined) throw emptyResponseError();
  if (response !== undefined) {
    // OpenID4VP 1.0 section 8.3: the state is inside; a plain one must not contradict it.
    if (form.state !== undefined && !isStateOf(form.state, request)) throw stateMismatchError();
    // OpenID4VP 1.0 section 8.3.1: `response` is the only parameter.
    if (vp_token !== undefined || error !== undefined) return refusedEnvelope('response_mode', 'response together with other parameters');
    // OpenID4VP 1.0 section 8.2
    if (request.responseMode === 'direct_post') return refusedEnvelope('response_mode', 'encrypted without being requested');
    return { kind: 'encrypted', jwe: response, ...(form.state !== undefined && { outerState: form.state }) };
  }
  // OpenID4VP 1.0 section 14.2: a caller who does not know the state cannot change the session.
  if (!isStateOf(form.state, request)) throw stateMismatchError();
  if (vp_token !== undefined && error !== undefined) return refusedEnvelope('response_mode', 'vp_token and error');
  // OpenID4VP 1.0 section 8.3: a wallet that cannot encrypt may still report an error.
  if (error !== undefined) return markCrossDevice(walletError(error, form.error_description), form.state, request);
  // OpenID4VP 1.0 section 8.3: never plain when encryption was requested.
  if (request.responseMode !== 'direct_post') return refusedEnvelope('response_mode', 'not encrypted');
  const vpToken = parseJson(vp_token ?? '', undefined, MAX_UNTRUSTED_PROPERTIES);
  return vpToken === undefined
    ? refusedEnvelope('malformed', 'vp_token is not JSON')
    : markCrossDevice({ kind: 'presentations', vpToken }, form.state, request);
}

/**
 * Classifies the properties of a decrypted response.
 * @param plaintext undefined after a decryption error.
 * @param request absent for the Digital Credentials API, which has no state.
 * @param outerState the form parameter `state` of `parseForm`.
 * @throws Failure `invalid_request` when the session must not change.
 */
export function parsePlaintext(plaintext: string | undefined, request?: PostContext, outerState?: string): Envelope {
  if (plaintext === undefined) return refusedEnvelope(UNDECRYPTED, 'the response does not decrypt');
  const payload = parseJsonObject(plaintext, undefined, MAX_UNTRUSTED_PROPERTIES);
  // OpenID4VP 1.0 section 8.3: response parameters at the top level of a JSON object
  if (payload === undefined) return refusedEnvelope('malformed', 'the plaintext is not a JSON object');
  // OpenID4VP 1.0 section 14.2
  if (request === undefined) return parsePayload(payload);
  if (!isStateOf(payload['state'], request)) throw stateMismatchError();
  // OpenID4VP 1.0 section 8.3: a plain state must not contradict, not even with the state of the other link.
  if (outerState !== undefined && outerState !== payload['state']) throw stateMismatchError();
  return markCrossDevice(parsePayload(payload), payload['state'], request);
}

type DcApiContext = Pick<DcApiVerification, 'responseMode' | 'isoMdoc' | 'requestObject' | 'multisigned' | 'parameters'>;

/**
 * Classifies the data that a page received from the Digital Credentials API (OpenID4VP 1.0 appendix A.4). There is no state: only the page
 * that created the request knows the response address.
 * @throws Failure `invalid_request` when the session must not change.
 */
export function parseDcApiData(data: JsonObject, request: DcApiContext): ParsedForm {
  const { responseMode, isoMdoc } = request;
  const { response, vp_token, error, error_description } = data;
  // Pages fill in every property that they know; an error that is null is absent.
  const errorValue = error === null ? undefined : error;
  if (response !== undefined) {
    // OpenID4VP 1.0 section 8.3.1: `response` is the only property.
    if (vp_token !== undefined || errorValue !== undefined)
      return refusedEnvelope('response_mode', 'response together with other parameters');
    // A JWE contains dots, base64url does not.
    if (isoMdoc !== undefined && typeof response === 'string' && !response.includes('.')) return parseSealed(response, isoMdoc);
    if (responseMode === 'dc_api' || !offersOpenId4Vp(request))
      return refusedEnvelope('response_mode', 'encrypted without being requested');
    if (typeof response !== 'string') return refusedEnvelope('malformed', 'response is not a string');
    return { kind: 'encrypted', jwe: response };
  }
  const envelope = parsePayload({ vp_token, error: errorValue, error_description });
  // OpenID4VP 1.0 section 8.3: a wallet that cannot encrypt may still report an error.
  const isPlain = envelope.kind === 'presentations' && (responseMode === 'dc_api.jwt' || !offersOpenId4Vp(request));
  return isPlain ? refusedEnvelope('response_mode', 'not encrypted') : envelope;
}

function parseSealed(response: string, isoMdoc: IsoMdocRequest): ParsedForm {
  const message = parseSealedResponse(response);
  return message === undefined
    ? refusedEnvelope('malformed', 'response is not an EncryptedResponse')
    : { kind: 'sealed', message, isoMdoc };
}

/**
 * Assigns the documents of a decrypted DeviceResponse to queries (ISO/IEC TS 18013-7 section C.3).
 * @param plaintext undefined after a decryption error.
 */
export function parseDeviceResponses(plaintext: Buffer | undefined, isoMdoc: IsoMdocRequest): Envelope {
  if (plaintext === undefined) return refusedEnvelope(UNDECRYPTED, 'the response does not decrypt');
  try {
    return { kind: 'presentations', vpToken: toVpToken(plaintext, isoMdoc.queryIds), isoMdoc: isoMdoc };
  } catch (error) {
    if (error instanceof Refusal) return refusedEnvelope('malformed', error.message);
    throw error;
  }
}

type Payload = { readonly [Name in 'vp_token' | 'error' | 'error_description']?: Json | undefined };

function parsePayload({ vp_token, error, error_description }: Payload): Envelope {
  if (vp_token === undefined && error === undefined) throw emptyResponseError();
  if (vp_token !== undefined && error !== undefined) return refusedEnvelope('response_mode', 'vp_token and error');
  return vp_token === undefined ? walletError(error, error_description) : { kind: 'presentations', vpToken: vp_token };
}

function refusedEnvelope(code: SessionFailureCode, detail: string): Envelope & { kind: 'refused' } {
  return { kind: 'refused', code, detail };
}

function emptyResponseError(): Failure {
  return new Failure('invalid_request', 'send vp_token, response or error');
}

function stateMismatchError(): Failure {
  return new Failure('invalid_request', 'state does not belong to this request');
}

const ERROR_CODE = /^[a-z_]{1,64}$/;
const MAX_DESCRIPTION = 300;
const MARKUP: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** The wallet's error text is untrusted: it is truncated, and control characters and markup are removed. */
function walletError(error: Json | undefined, description: Json | undefined): Envelope {
  const code = typeof error === 'string' && ERROR_CODE.test(error) ? error : undefined;
  const text = typeof description === 'string' ? description.slice(0, MAX_DESCRIPTION) : '';
  const message = text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, ' ').replaceAll(/[&<>"]/g, (character) => MARKUP[character] ?? '');
  return { kind: 'wallet_error', error: walletFailure(code, message === '' ? 'the wallet returned an error' : message) };
}
