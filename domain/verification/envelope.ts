import { Failure } from '../shared/failure.ts';
import { type Json, type JsonObject, MAX_STRANGER_MEMBERS, parseJson, parseJsonObject } from '../shared/json.ts';
import { Refusal } from '../shared/refusal.ts';
import { type SessionFailure, type SessionFailureCode, walletFailure } from '../shared/session-failure.ts';
import { offersOpenId4Vp } from './dc-api.ts';
import { parseSealedResponse, type SealedResponse, vpTokenOf } from './iso-mdoc/response.ts';
import type { DcApiVerification, IsoMdocAsked, PostedVerification } from './verification-request.ts';

/** Form fields of a response (OpenID4VP 1.0 sections 8.2, 8.3 and 8.5); others are ignored. */
export type ResponseForm = {
  readonly vp_token?: string | undefined;
  readonly response?: string | undefined;
  readonly state?: string | undefined;
  readonly error?: string | undefined;
  readonly error_description?: string | undefined;
};

/**
 * What a wallet's post amounts to. `refused` ends the session; what may not end it (nothing to answer, a `state`
 * that is not ours) never becomes a value of this type.
 */
export type Envelope =
  | {
      readonly kind: 'presentations';
      readonly vpToken: Json;
      /** Absent when it came by OpenID4VP. */
      readonly isoMdoc?: IsoMdocAsked;
      /** The wallet used the link for another device, so that its browser is not redirected. */
      readonly isCrossDevice?: true;
    }
  | { readonly kind: 'wallet_error'; readonly error: SessionFailure; readonly isCrossDevice?: true }
  | { readonly kind: 'refused'; readonly code: SessionFailureCode; readonly detail: string };

const UNDECRYPTED = 'decryption_failed';

export function isUndecrypted(envelope: Envelope): envelope is Extract<Envelope, { kind: 'refused' }> {
  return envelope.kind === 'refused' && envelope.code === UNDECRYPTED;
}

type Mode = Pick<PostedVerification, 'state' | 'crossDeviceState' | 'responseMode'>;

/** Whether a `state` is one of the two of a request. An absent `crossDeviceState` matches nothing. */
function isStateOf(state: unknown, { state: sameDevice, crossDeviceState }: Mode): boolean {
  return typeof state === 'string' && (state === sameDevice || state === crossDeviceState);
}

/** Marks the response to the link for another device. */
function withDevice(envelope: Envelope, state: unknown, { crossDeviceState }: Mode): Envelope {
  const isCrossDevice = crossDeviceState !== undefined && state === crossDeviceState;
  return isCrossDevice && envelope.kind !== 'refused' ? { ...envelope, isCrossDevice } : envelope;
}

/** Plain parameters, or the one parameter that still has to be decrypted. */
export type OpenedForm =
  | Envelope
  | {
      readonly kind: 'encrypted';
      readonly jwe: string;
      /** The form parameter `state` beside `response`, which the encrypted `state` has to equal. */
      readonly outerState?: string;
    }
  | { readonly kind: 'sealed'; readonly message: SealedResponse; readonly asked: IsoMdocAsked };

/**
 * Sorts the fields of a post before anything is decrypted.
 * @throws Failure `invalid_request` when the session must stay as it is.
 */
export function parseForm(form: ResponseForm, request: Mode): OpenedForm {
  const { vp_token, response, error } = form;
  if (vp_token === undefined && response === undefined && error === undefined) throw nothingToAnswer();
  if (response !== undefined) {
    // OpenID4VP 1.0 section 8.3: the state is inside; one that stands outside as well must not contradict.
    if (form.state !== undefined && !isStateOf(form.state, request)) throw foreignState();
    // OpenID4VP 1.0 section 8.3.1: `response` stands alone.
    if (vp_token !== undefined || error !== undefined) return refused('response_mode', 'response and more');
    // OpenID4VP 1.0 section 8.2
    if (request.responseMode === 'direct_post') return refused('response_mode', 'encrypted, though not asked');
    return { kind: 'encrypted', jwe: response, ...(form.state !== undefined && { outerState: form.state }) };
  }
  // OpenID4VP 1.0 section 14.2: who does not know the state cannot touch the session.
  if (!isStateOf(form.state, request)) throw foreignState();
  if (vp_token !== undefined && error !== undefined) return refused('response_mode', 'vp_token and error');
  // OpenID4VP 1.0 section 8.3: a wallet that cannot encrypt may still report an error.
  if (error !== undefined) return withDevice(walletError(error, form.error_description), form.state, request);
  // OpenID4VP 1.0 section 8.3: never plain when encryption was asked for.
  if (request.responseMode !== 'direct_post') return refused('response_mode', 'not encrypted');
  const vpToken = parseJson(vp_token ?? '', undefined, MAX_STRANGER_MEMBERS);
  return vpToken === undefined
    ? refused('malformed', 'vp_token is not JSON')
    : withDevice({ kind: 'presentations', vpToken }, form.state, request);
}

/**
 * Sorts the members of a decrypted response.
 * @param plaintext undefined when it could not be decrypted.
 * @param request absent for the Digital Credentials API, which knows no state.
 * @param outerState the form parameter `state` of `parseForm`.
 * @throws Failure `invalid_request` when the session must stay as it is.
 */
export function parsePlaintext(plaintext: string | undefined, request?: Mode, outerState?: string): Envelope {
  if (plaintext === undefined) return refused(UNDECRYPTED, 'the response does not decrypt');
  const payload = parseJsonObject(plaintext, undefined, MAX_STRANGER_MEMBERS);
  // OpenID4VP 1.0 section 8.3: response parameters at the top level of a JSON object
  if (payload === undefined) return refused('malformed', 'the plaintext is not a JSON object');
  // OpenID4VP 1.0 section 14.2
  if (request === undefined) return parsePayload(payload);
  if (!isStateOf(payload['state'], request)) throw foreignState();
  // OpenID4VP 1.0 section 8.3: a state outside must not contradict, not even with the state of the other link.
  if (outerState !== undefined && outerState !== payload['state']) throw foreignState();
  return withDevice(parsePayload(payload), payload['state'], request);
}

type OfPage = Pick<DcApiVerification, 'responseMode' | 'isoMdoc' | 'requestObject' | 'multisigned' | 'parameters'>;

/**
 * Sorts the members of what a page hands over from the Digital Credentials API (OpenID4VP 1.0 appendix A.4). There is
 * no state: the one who knows the address got it with the request.
 * @throws Failure `invalid_request` when the session must stay as it is.
 */
export function parseDcApiData(data: JsonObject, request: OfPage): OpenedForm {
  const { responseMode, isoMdoc } = request;
  const { response, vp_token, error, error_description } = data;
  // Pages fill in every member that they know; only an error that is null says nothing.
  const known = error === null ? undefined : error;
  if (response !== undefined) {
    // OpenID4VP 1.0 section 8.3.1: `response` stands alone.
    if (vp_token !== undefined || known !== undefined) return refused('response_mode', 'response and more');
    // A JWE has dots, base64url has none.
    if (isoMdoc !== undefined && typeof response === 'string' && !response.includes('.')) return parseSealed(response, isoMdoc);
    if (responseMode === 'dc_api' || !offersOpenId4Vp(request)) return refused('response_mode', 'encrypted, though not asked');
    if (typeof response !== 'string') return refused('malformed', 'response is not a string');
    return { kind: 'encrypted', jwe: response };
  }
  const opened = parsePayload({ vp_token, error: known, error_description });
  // OpenID4VP 1.0 section 8.3: a wallet that cannot encrypt may still report an error.
  const isPlain = opened.kind === 'presentations' && (responseMode === 'dc_api.jwt' || !offersOpenId4Vp(request));
  return isPlain ? refused('response_mode', 'not encrypted') : opened;
}

function parseSealed(response: string, asked: IsoMdocAsked): OpenedForm {
  const message = parseSealedResponse(response);
  return message === undefined ? refused('malformed', 'response is no EncryptedResponse') : { kind: 'sealed', message, asked };
}

/**
 * Sorts the documents of a decrypted DeviceResponse (ISO/IEC TS 18013-7 section C.3).
 * @param plaintext undefined when it could not be decrypted.
 */
export function parseDeviceResponses(plaintext: Buffer | undefined, asked: IsoMdocAsked): Envelope {
  if (plaintext === undefined) return refused(UNDECRYPTED, 'the response does not decrypt');
  try {
    return { kind: 'presentations', vpToken: vpTokenOf(plaintext, asked.queryIds), isoMdoc: asked };
  } catch (error) {
    if (error instanceof Refusal) return refused('malformed', error.message);
    throw error;
  }
}

type Payload = { readonly [Name in 'vp_token' | 'error' | 'error_description']?: Json | undefined };

function parsePayload({ vp_token, error, error_description }: Payload): Envelope {
  if (vp_token === undefined && error === undefined) throw nothingToAnswer();
  if (vp_token !== undefined && error !== undefined) return refused('response_mode', 'vp_token and error');
  return vp_token === undefined ? walletError(error, error_description) : { kind: 'presentations', vpToken: vp_token };
}

function refused(code: SessionFailureCode, detail: string): Envelope & { kind: 'refused' } {
  return { kind: 'refused', code, detail };
}

function nothingToAnswer(): Failure {
  return new Failure('invalid_request', 'send vp_token, response or error');
}

function foreignState(): Failure {
  return new Failure('invalid_request', 'state does not belong to this request');
}

const ERROR_CODE = /^[a-z_]{1,64}$/;
const MAX_DESCRIPTION = 300;
const MARKUP: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** The wallet's words are a stranger's: cut, without control characters and without markup. */
function walletError(error: Json | undefined, description: Json | undefined): Envelope {
  const code = typeof error === 'string' && ERROR_CODE.test(error) ? error : undefined;
  const text = typeof description === 'string' ? description.slice(0, MAX_DESCRIPTION) : '';
  const message = text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, ' ').replaceAll(/[&<>"]/g, (character) => MARKUP[character] ?? '');
  return {
    kind: 'wallet_error',
    error: walletFailure(code, message === '' ? 'the wallet refused' : message),
  };
}
