import {
  mergeRegistrarConfiguration,
  newRegistrarConfiguration,
  type RegistrarConfiguration,
  type RegistrarConfigurationBody,
  type RegistrarConfigurationUpdate,
} from '../../domain/registrar/registrar-configuration.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import { needs, type PortsOf } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Registrar } from '../ports/registrar.ts';
import { Remote } from '../ports/remote.ts';
import { Store } from '../ports/store.ts';
import { changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { assertCallable } from '../webhooks/called-addresses.ts';
import { loginFailure } from './registrar-failures.ts';

const PORTS = { store: Store, clock: Clock, registrar: Registrar, remote: Remote };
type Ports = PortsOf<typeof PORTS>;

export class GetRegistrarConfiguration extends needs({}) {
  /** @throws Failure `not_found` when it has none. */
  async execute({ tenant }: TenantCaller): Promise<RegistrarConfiguration> {
    const configuration = await tenant.registrarConfiguration();
    if (configuration === undefined) throw new Failure('not_found', 'no registrar is configured');
    return configuration;
  }
}

/** Creates or replaces the login of a tenant at its registrar, after testing it. */
export class ReplaceRegistrarConfiguration extends needs(PORTS) {
  /**
   * @throws Failure `invalid_input` for a rejected login or a wrong address, `unavailable` when the registrar does not answer;
   *   nothing is stored then.
   */
  async execute(caller: TenantCaller, body: RegistrarConfigurationBody): Promise<RegistrarConfiguration> {
    const { store, clock } = this.ports;
    await tryLogin(this.ports, caller, body);
    return changeTenantExclusively(store, caller, async ({ registrarConfiguration: documents }) => {
      const configuration = newRegistrarConfiguration(body, await documents.find('default'), clock.now());
      await documents.put(configuration);
      return configuration;
    });
  }
}

/** Changes properties of the login, after testing the result; null resets an optional one. */
export class UpdateRegistrarConfiguration extends needs(PORTS) {
  /** @throws Failure `not_found`, `conflict` after a concurrent change, and as `ReplaceRegistrarConfiguration`. */
  async execute(caller: TenantCaller, changes: RegistrarConfigurationUpdate): Promise<RegistrarConfiguration> {
    const { store, clock } = this.ports;
    const storedConfiguration = await store.forTenant(caller.tenantId, (repositories) =>
      repositories.registrarConfiguration.get('default'),
    );
    const body = mergeRegistrarConfiguration(storedConfiguration, changes);
    // Defaults of certificates are not part of the login.
    const properties = Object.keys(defined(changes));
    const isOfLogin = properties.length === 0 || properties.some((name) => name !== 'registrationCertificateDefaults');
    if (isOfLogin) await tryLogin(this.ports, caller, body);
    return changeTenantExclusively(store, caller, async ({ registrarConfiguration: documents }) => {
      const currentConfiguration = await documents.get('default');
      if (currentConfiguration.updatedAt.getTime() !== storedConfiguration.updatedAt.getTime()) {
        throw new Failure('conflict', 'the registrar configuration was changed concurrently; try again');
      }
      const configuration = newRegistrarConfiguration(body, currentConfiguration, clock.now());
      await documents.put(configuration);
      return configuration;
    });
  }
}

/** Removes the login of a tenant, and the registration certificates that were obtained with it. */
export class DeleteRegistrarConfiguration extends needs({ store: Store }) {
  /** @throws Failure `not_found`, or `conflict` while a presentation configuration needs the registrar. */
  async execute(caller: TenantCaller): Promise<void> {
    await changeTenantExclusively(
      this.ports.store,
      caller,
      async ({ presentationConfigurations, registrarConfiguration, registrationCertificates }) => {
        const configurations = await presentationConfigurations.list();
        const user = configurations.find(({ registrationCert: request }) => request && request.jwt === undefined);
        if (user !== undefined) throw new Failure('conflict', `the presentation configuration ${user.id} gets a certificate there`);
        await registrarConfiguration.remove('default');
        for (const { id } of await registrationCertificates.list()) await registrationCertificates.remove(id);
      },
    );
  }
}

async function tryLogin(
  { registrar, remote }: Ports,
  { tenantId }: TenantCaller,
  configuration: RegistrarConfigurationBody,
): Promise<void> {
  const { registrarUrl, oidcUrl } = configuration;
  assertCallable(remote, tenantId, [
    { path: 'registrarUrl', url: registrarUrl },
    { path: 'oidcUrl', url: oidcUrl },
  ]);
  try {
    await registrar.logIn({ tenantId, configuration });
  } catch (error) {
    throw loginFailure(error);
  }
}
