import type { JsonObject } from '../shared/json.ts';
import { ISO_MDOC_PROTOCOL } from './iso-mdoc/request.ts';
import type { DcApiVerification } from './verification-request.ts';

/**
 * What a page passes to `navigator.credentials.get` as `digital` (OpenID4VP 1.0 appendix A.1): one request for each
 * protocol, of which a browser takes the first that a wallet understands.
 */
export function dcApiRequests(asked: DcApiVerification): JsonObject {
  return { requests: [...openId4VpRequest(asked), ...isoMdocRequest(asked)] };
}

/** Whether it may be answered by OpenID4VP. */
export function offersOpenId4Vp(asked: Pick<DcApiVerification, 'isoMdoc' | 'requestObject' | 'multisigned' | 'parameters'>): boolean {
  const { isoMdoc, requestObject, multisigned, parameters } = asked;
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
