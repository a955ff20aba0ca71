import { invocationUri } from '../../domain/shared/invocation-uri.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { crossDeviceKey } from '../../domain/verification/cross-device.ts';
import { INVOCATION_URI } from '../../domain/verification/request-object.ts';
import type { PostedVerification } from '../../domain/verification/verification-request.ts';

type LinkSettings = Pick<PresentationConfiguration, 'invocationUri' | 'requestUriMethod'>;

/** Path below the address and key of a request: the request for a wallet on another device than the browser. */
export const CROSS_DEVICE_PATH = 'cross-device';

/** The link for a wallet on the device of the browser. @param configuration undefined if it was removed meanwhile. */
export function walletLink(request: PostedVerification, configuration: LinkSettings | undefined): string {
  return linkOf(request, configuration);
}

/**
 * The link for a wallet on another device, for a QR code; the same as `walletLink` if no redirect follows.
 * @returns undefined with `requireResponseCode: true`, since another device cannot bring the response code back.
 */
export function crossDeviceLink(request: PostedVerification, configuration: LinkSettings | undefined): string | undefined {
  const { crossDeviceState, parameters, requestUrl, redirectUri, awaitsResponseCode } = request;
  if (crossDeviceState === undefined) {
    // Requests of an earlier version have only one link, whose response is redirected.
    const isOnlyLink = awaitsResponseCode === true || redirectUri !== undefined;
    return isOnlyLink ? undefined : linkOf(request, configuration);
  }
  const crossDeviceRequest = {
    ...request,
    requestUrl: `${requestUrl}.${crossDeviceKey(crossDeviceState)}/${CROSS_DEVICE_PATH}`,
    ...(parameters !== undefined && { parameters: { ...parameters, state: crossDeviceState } }),
  };
  return linkOf(crossDeviceRequest, configuration);
}

function linkOf(
  { clientId, requestUrl, parameters }: Pick<PostedVerification, 'clientId' | 'requestUrl' | 'parameters'>,
  configuration: LinkSettings | undefined,
): string {
  const base = configuration?.invocationUri ?? INVOCATION_URI;
  // An unsigned request is contained in the link.
  if (parameters !== undefined) return invocationUri(base, parameters);
  return invocationUri(base, {
    client_id: clientId,
    request_uri: requestUrl,
    // OpenID4VP 1.0 section 5.10: GET is the default
    ...(configuration?.requestUriMethod === 'post' && { request_uri_method: 'post' }),
  });
}
