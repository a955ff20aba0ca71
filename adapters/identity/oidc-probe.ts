import type { AuthorizationServers } from '../../application/ports/authorization-servers.ts';
import { Probe } from '../../application/ports/probe.ts';

type Client = { readonly issuer: string; readonly clientId: string; readonly clientSecret: string };

/** The external identity provider answers, and knows the client of this service. */
export class OidcProbe extends Probe {
  readonly name = 'identity-provider';
  readonly #servers: AuthorizationServers;
  readonly #client: Client;

  constructor(servers: AuthorizationServers, client: Client) {
    super();
    this.#servers = servers;
    this.#client = client;
  }

  override check(): Promise<void> {
    return this.#servers.logInAsClient(this.#client.issuer, this.#client);
  }
}
