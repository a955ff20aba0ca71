import { clientRoutes } from '../../adapters/http/clients/client.routes.ts';
import { tokenRoutes } from '../../adapters/http/oauth2/token.routes.ts';
import { AuthenticateClient } from '../../application/clients/authenticate-client.ts';
import {
  CreateClient,
  DeleteClient,
  GetClient,
  ListClients,
  UpdateClient,
} from '../../application/clients/clients.ts';
import { IssueAccessToken } from '../../application/clients/issue-access-token.ts';
import { PickUpSecret } from '../../application/clients/pick-up-secret.ts';
import { RotateSecret } from '../../application/clients/rotate-secret.ts';
import { AccessTokens } from '../../application/ports/access-tokens.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { type Feature, given } from './feature.ts';

/** Clients of tenants, and who may call. */
export const clients: Feature = {
  classes: [
    ...[ListClients, GetClient, CreateClient, UpdateClient, DeleteClient, PickUpSecret, RotateSecret],
    IssueAccessToken,
    given(AuthenticateClient, {
      accessTokens: AccessTokens,
      store: Store,
      tenantConfigurations: TenantConfigurations,
      settings: ServiceSettings,
    }),
  ],
  administered: [clientRoutes],
};

/** Where clients get their access tokens. */
export const accessTokens: Feature = { classes: [], administered: [tokenRoutes] };
