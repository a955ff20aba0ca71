import type { JsonObject } from '../shared/json.ts';
import { ISO_MDOC_PROTOCOL } from './iso-mdoc/request.ts';
import type { DcApiVerification } from './verification-request.ts';

/**
 * The argument of a page for `navigator.credentials.get` as `digital` (OpenID4VP 1.0 appendix A.1): one request per protocol, of which a
 * browser uses the first that a wallet supports.
 */
export function dcApiRequests(request: DcApiVerification): JsonObject {
  return { requests: [...openId4VpRequest(request), ...isoMdocRequest(request)] };
}

/** True if the request may be answered by OpenID4VP. */
export function offersOpenId4Vp(request: Pick<DcApiVerification, 'isoMdoc' | 'requestObject' | 'multisigned' | 'parameters'>): boolean {
  const { isoMdoc, requestObject, multisigned, parameters } = request;
  return isoMdoc === undefined || (requestObject ?? multisigned ?? parameters) !== undefined;
}

function openId4VpRequest({ requestObject, multisigned, parameters }: DcApiVerification): JsonObject[] {
  if (multisigned !== undefined) return [{ protocol: 'openid4vp-v1-multisigned', data: { request: multisigned } }];
  if (requestObject !== undefined) return [{ protocol: 'openid4vp-v1-signed', data: { request: requestObject } }];
  return parameters === undefined ? [] : [{ protocol: 'openid4vp-v1-unsigned', data: parameters }];
}

function isoMdocRequest({ isoMdoc }: DcApiVerification): JsonObject[] {
  if (isoMdoc === undefined) return [];
  const { deviceRequest, encryptionInfo } = isoMdoc;
  return [{ protocol: ISO_MDOC_PROTOCOL, data: { deviceRequest, encryptionInfo } }];
}
