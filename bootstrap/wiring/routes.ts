import type { Container } from 'inversify';
import { auditRoutes } from '../../adapters/http/audit/audit.routes.ts';
import { cacheRoutes } from '../../adapters/http/caches/cache.routes.ts';
import { clientRoutes } from '../../adapters/http/clients/client.routes.ts';
import { consoleRoutes } from '../../adapters/http/console/console.routes.ts';
import { issuanceRoutes } from '../../adapters/http/issuance/configuration.routes.ts';
import { deferredRoutes } from '../../adapters/http/issuance/deferred.routes.ts';
import { issuanceMetadataRoutes } from '../../adapters/http/issuance/metadata.routes.ts';
import { issuanceWalletRoutes } from '../../adapters/http/issuance/wallet.routes.ts';
import { authorityRoutes } from '../../adapters/http/keys/authority.routes.ts';
import { certificateRoutes } from '../../adapters/http/keys/certificate.routes.ts';
import { keyRoutes } from '../../adapters/http/keys/key.routes.ts';
import { keyChainRoutes } from '../../adapters/http/keys/key-chain.routes.ts';
import { tokenRoutes } from '../../adapters/http/oauth/access-token.routes.ts';
import { authorizationServerRoutes } from '../../adapters/http/oauth/authorization-server.routes.ts';
import { chainedAsRoutes } from '../../adapters/http/oauth/chained-as.routes.ts';
import { interactiveRoutes } from '../../adapters/http/oauth/interactive.routes.ts';
import { challengeRoutes } from '../../adapters/http/oauth/server-endpoints.ts';
import { registrarRoutes } from '../../adapters/http/registrar/registrar.routes.ts';
import type { Family, Route } from '../../adapters/http/route.ts';
import { documentationRoutes } from '../../adapters/http/service/documentation.routes.ts';
import { guideRoutes } from '../../adapters/http/service/guide.routes.ts';
import { metricsRoutes } from '../../adapters/http/service/metrics.routes.ts';
import { serviceRoutes } from '../../adapters/http/service/service.routes.ts';
import { serviceSettingRoutes } from '../../adapters/http/service/settings.routes.ts';
import { offerPageRoutes } from '../../adapters/http/sessions/offer-page.routes.ts';
import { sessionRoutes } from '../../adapters/http/sessions/session.routes.ts';
import { sessionRateRoutes } from '../../adapters/http/sessions/session-rates.routes.ts';
import { statusListAdministrationRoutes } from '../../adapters/http/status-lists/administration.routes.ts';
import { revocationRoutes } from '../../adapters/http/status-lists/revoke-credentials.routes.ts';
import { statusListRoutes } from '../../adapters/http/status-lists/status-list.routes.ts';
import { settingsRoutes } from '../../adapters/http/tenants/settings.routes.ts';
import { tenantRoutes } from '../../adapters/http/tenants/tenant.routes.ts';
import { trustForecastRoutes } from '../../adapters/http/trust-forecast/trust-forecast.routes.ts';
import { followedListRoutes } from '../../adapters/http/trust-lists/followed-list.routes.ts';
import { publishedListRoutes } from '../../adapters/http/trust-lists/published-list.routes.ts';
import { trustListRoutes } from '../../adapters/http/trust-lists/trust-list.routes.ts';
import { presentationConfigurationRoutes } from '../../adapters/http/verification/configuration.routes.ts';
import { presentationOfferRoutes } from '../../adapters/http/verification/offer.routes.ts';
import { presentationTrialRoutes } from '../../adapters/http/verification/trial.routes.ts';
import { dcApiRoutes, presentationWalletRoutes, presentedRoutes } from '../../adapters/http/verification/wallet.routes.ts';
import { webhookSecretRoutes } from '../../adapters/http/webhooks/webhook-secret.routes.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { obtain } from './wire.ts';

/** The routes are tried in this order: the routes of wallets and public routes come before those of administrators. */
const FAMILIES: readonly Family[] = [
  issuanceWalletRoutes,
  authorizationServerRoutes,
  interactiveRoutes,
  challengeRoutes,
  chainedAsRoutes,
  ...[
    issuanceMetadataRoutes,
    presentationWalletRoutes,
    presentedRoutes,
    offerPageRoutes,
    dcApiRoutes,
    statusListRoutes,
    revocationRoutes,
    publishedListRoutes,
  ],
  authorityRoutes,
  ...[
    sessionRateRoutes,
    sessionRoutes,
    issuanceRoutes,
    deferredRoutes,
    presentationOfferRoutes,
    presentationConfigurationRoutes,
    presentationTrialRoutes,
  ],
  ...[
    statusListAdministrationRoutes,
    tokenRoutes,
    serviceRoutes,
    serviceSettingRoutes,
    consoleRoutes,
    tenantRoutes,
    settingsRoutes,
    clientRoutes,
  ],
  ...[
    keyChainRoutes,
    certificateRoutes,
    keyRoutes,
    registrarRoutes,
    trustListRoutes,
    followedListRoutes,
    trustForecastRoutes,
    cacheRoutes,
    auditRoutes,
    webhookSecretRoutes,
  ],
];

/** Routes of the OpenAPI document, in the order in which they are matched. */
export function collectRoutes(container: Container): readonly Route[] {
  const settings = container.get(ServiceSettings);
  const routes = FAMILIES.flatMap((make) => make((token) => obtain(container, token)));
  // The module is loaded when the document is requested, so that an idle process does not hold it.
  const document = async (): Promise<object> => {
    const { buildOpenApi } = await import('../../adapters/http/openapi/openapi.ts');
    return buildOpenApi(allRoutes, { publicUrl: settings.publicUrl, version: settings.release.version });
  };
  const allRoutes: readonly Route[] = [...routes, ...documentationRoutes(document, settings)];
  return allRoutes;
}

/** All served routes. Pages for people and the metrics for the operator are not in the document, which is for clients. */
export function servedRoutes(container: Container, metrics?: Parameters<typeof metricsRoutes>[0]): readonly Route[] {
  const pages = guideRoutes(container.get(ServiceSettings));
  return [...collectRoutes(container), ...pages, ...(metrics === undefined ? [] : metricsRoutes(metrics))];
}
