import type { Container } from 'inversify';
import { IssuanceRoutes } from '../adapters/http/issuance/configuration.routes.ts';
import { IssuanceWalletRoutes } from '../adapters/http/issuance/wallet.routes.ts';
import type { Route } from '../adapters/http/route.ts';
import { StatusListRoutes } from '../adapters/http/status-lists/status-list.routes.ts';

/**
 * All routes in the order in which they are tried: what wallets call stands first, what administrators call
 * afterwards. Addresses of the service itself never begin with a tenant's name, so the order changes no meaning.
 */
export function collectRoutes(container: Container): readonly Route[] {
  return [
    ...container.get(IssuanceWalletRoutes).routes,
    ...container.get(StatusListRoutes).routes,
    ...container.get(IssuanceRoutes).routes,
  ];
}
