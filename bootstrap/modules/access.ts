import { ContainerModule } from 'inversify';
import { AuthenticateClient } from '../../application/clients/authenticate-client.ts';
import { IssueAccessToken } from '../../application/clients/issue-access-token.ts';
import { AccessTokens } from '../../application/ports/access-tokens.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Secrets } from '../../application/ports/secrets.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { wire } from '../wire.ts';

/** Who may call: access tokens and the view of a tenant that every request needs. */
export const access = new ContainerModule((options) => {
  wire(options, TenantConfigurations, { store: Store, eventBus: EventBus });
  wire(options, AuthenticateClient, {
    accessTokens: AccessTokens,
    store: Store,
    tenantConfigurations: TenantConfigurations,
    settings: ServiceSettings,
  });
  wire(options, IssueAccessToken, {
    accessTokens: AccessTokens,
    secrets: Secrets,
    store: Store,
    settings: ServiceSettings,
  });
});
