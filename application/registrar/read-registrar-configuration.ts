import type { RegistrarConfiguration } from '../../domain/registrar/registrar-configuration.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';

/** How the tenant logs in at its registrar. */
export class GetRegistrarConfiguration {
  /** @throws Failure `not_found` when it has none. */
  async execute({ configured }: TenantCaller): Promise<RegistrarConfiguration> {
    const configuration = await configured.registrarConfiguration();
    if (configuration === undefined) throw new Failure('not_found', 'no registrar is configured');
    return configuration;
  }
}
