import { invocationUri } from '../../domain/shared/invocation-uri.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { crossDeviceKey } from '../../domain/verification/cross-device.ts';
import { INVOCATION_URI } from '../../domain/verification/request-object.ts';
import type { PostedVerification } from '../../domain/verification/verification-request.ts';

type Inviting = Pick<PresentationConfiguration, 'invocationUri' | 'requestUriMethod'>;

/** Below the address and key of a request: the same request for a wallet on another device than the browser. */
export const CROSS_DEVICE = 'cross-device';

/** The link for a wallet on the device of the browser. @param configuration undefined for one that was removed meanwhile. */
export function walletLink(request: PostedVerification, configuration: Inviting | undefined): string {
  return linkOf(request, configuration);
}

/**
 * The link for a wallet on another device, to be shown as a QR code; the same as `walletLink` where no redirect can follow.
 * @returns undefined with `requireResponseCode: true`, since another device cannot bring the response code back.
 */
export function crossDeviceLink(request: PostedVerification, configuration: Inviting | undefined): string | undefined {
  const { crossDeviceState, parameters, requestUrl, redirectUri, awaitsResponseCode } = request;
  if (crossDeviceState === undefined) {
    // Requests of an earlier release have one link alone, whose response is redirected.
    const isAlone = awaitsResponseCode === true || redirectUri !== undefined;
    return isAlone ? undefined : linkOf(request, configuration);
  }
  const ofOtherDevice = {
    ...request,
    requestUrl: `${requestUrl}.${crossDeviceKey(crossDeviceState)}/${CROSS_DEVICE}`,
    ...(parameters !== undefined && { parameters: { ...parameters, state: crossDeviceState } }),
  };
  return linkOf(ofOtherDevice, configuration);
}

function linkOf(
  { clientId, requestUrl, parameters }: Pick<PostedVerification, 'clientId' | 'requestUrl' | 'parameters'>,
  configuration: Inviting | undefined,
): string {
  const base = configuration?.invocationUri ?? INVOCATION_URI;
  // An unsigned request stands in the link itself.
  if (parameters !== undefined) return invocationUri(base, parameters);
  return invocationUri(base, {
    client_id: clientId,
    request_uri: requestUrl,
    // OpenID4VP 1.0 section 5.10: get unless stated
    ...(configuration?.requestUriMethod === 'post' && { request_uri_method: 'post' }),
  });
}
