import type { PostedVerification } from '../../domain/sessions/session.ts';
import { invocationUri } from '../../domain/shared/invocation-uri.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { INVOCATION_URI } from '../../domain/verification/request-object.ts';

type Inviting = Pick<PresentationConfiguration, 'invocationUri' | 'requestUriMethod'>;

/** What starts the wallet for a request. @param configuration undefined for one that was removed meanwhile. */
export function walletLink(request: PostedVerification, configuration: Inviting | undefined): string {
  const { clientId, requestUrl, parameters } = request;
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
