import type { Container } from 'inversify';
import { AuditRoutes } from '../adapters/http/audit/audit.routes.ts';
import { CacheRoutes } from '../adapters/http/caches/cache.routes.ts';
import { ClientRoutes } from '../adapters/http/clients/client.routes.ts';
import { IssuanceRoutes } from '../adapters/http/issuance/configuration.routes.ts';
import { DeferredRoutes } from '../adapters/http/issuance/deferred.routes.ts';
import { IssuanceMetadataRoutes } from '../adapters/http/issuance/metadata.routes.ts';
import { IssuanceWalletRoutes } from '../adapters/http/issuance/wallet.routes.ts';
import { CertificateRoutes } from '../adapters/http/keys/certificate.routes.ts';
import { KeyRoutes } from '../adapters/http/keys/key.routes.ts';
import { KeyChainRoutes } from '../adapters/http/keys/key-chain.routes.ts';
import { AuthorizationServerRoutes } from '../adapters/http/oauth/authorization-server.routes.ts';
import { ChainedAsRoutes } from '../adapters/http/oauth/chained-as.routes.ts';
import { ChallengeRoutes } from '../adapters/http/oauth/challenge.routes.ts';
import { InteractiveRoutes } from '../adapters/http/oauth/interactive.routes.ts';
import { TokenRoutes } from '../adapters/http/oauth2/token.routes.ts';
import { RegistrarRoutes } from '../adapters/http/registrar/registrar.routes.ts';
import type { Route } from '../adapters/http/route.ts';
import { DocumentationRoutes } from '../adapters/http/service/documentation.routes.ts';
import { ServiceRoutes } from '../adapters/http/service/service.routes.ts';
import { SessionRoutes } from '../adapters/http/sessions/session.routes.ts';
import { StatusListAdministrationRoutes } from '../adapters/http/status-lists/administration.routes.ts';
import { StatusListRoutes } from '../adapters/http/status-lists/status-list.routes.ts';
import { SettingsRoutes } from '../adapters/http/tenants/settings.routes.ts';
import { TenantRoutes } from '../adapters/http/tenants/tenant.routes.ts';
import { PublishedListRoutes } from '../adapters/http/trust-lists/published-list.routes.ts';
import { TrustListRoutes } from '../adapters/http/trust-lists/trust-list.routes.ts';
import { PresentationConfigurationRoutes } from '../adapters/http/verification/configuration.routes.ts';
import { DcApiRoutes } from '../adapters/http/verification/dc-api.routes.ts';
import { PresentationOfferRoutes } from '../adapters/http/verification/offer.routes.ts';
import { PresentationWalletRoutes } from '../adapters/http/verification/wallet.routes.ts';
import { ServiceSettings } from '../application/ports/settings.ts';

/** In the order in which they are tried: what wallets call stands first, what administrators call afterwards. */
const FAMILIES = [
  IssuanceWalletRoutes,
  AuthorizationServerRoutes,
  InteractiveRoutes,
  ChallengeRoutes,
  ChainedAsRoutes,
  IssuanceMetadataRoutes,
  PresentationWalletRoutes,
  DcApiRoutes,
  StatusListRoutes,
  StatusListAdministrationRoutes,
  PublishedListRoutes,
  SessionRoutes,
  IssuanceRoutes,
  DeferredRoutes,
  PresentationOfferRoutes,
  PresentationConfigurationRoutes,
  TokenRoutes,
  ServiceRoutes,
  TenantRoutes,
  SettingsRoutes,
  ClientRoutes,
  KeyChainRoutes,
  CertificateRoutes,
  KeyRoutes,
  RegistrarRoutes,
  TrustListRoutes,
  CacheRoutes,
  AuditRoutes,
];

/** The whole route table; the API document is made of it and is part of it. */
export function collectRoutes(container: Container): readonly Route[] {
  const settings = container.get(ServiceSettings);
  const routes: Route[] = [
    ...FAMILIES.flatMap((family) => container.get<{ routes: readonly Route[] }>(family).routes),
  ];
  const { publicUrl, version } = settings;
  // Loaded when somebody asks for the document: an idle process can do without what builds it.
  const document = async () => {
    const { buildOpenApi } = await import('../adapters/http/openapi.ts');
    return buildOpenApi(routes, { publicUrl, version });
  };
  routes.push(...new DocumentationRoutes({ document, settings }).routes);
  return routes;
}
