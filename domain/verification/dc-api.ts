import type { DcApiVerification } from '../sessions/session.ts';
import type { JsonObject } from '../shared/json.ts';

/** What a page passes to `navigator.credentials.get` as `digital` (OpenID4VP 1.0 appendix A.1). */
export function dcApiRequests({ requestObject, parameters = {} }: DcApiVerification): JsonObject {
  const request =
    requestObject === undefined
      ? { protocol: 'openid4vp-v1-unsigned', data: parameters }
      : { protocol: 'openid4vp-v1-signed', data: { request: requestObject } };
  return { requests: [request] };
}
