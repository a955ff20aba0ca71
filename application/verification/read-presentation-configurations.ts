import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TenantCaller } from '../caller.ts';
import { assertMaySee, maySee, unknown } from '../clients/visible-presentations.ts';

/** The presentation configurations that the client may use, in order of their ids. */
export class ListPresentationConfigurations {
  async execute(caller: TenantCaller): Promise<readonly PresentationConfiguration[]> {
    const configurations = await caller.configured.presentationConfigurations();
    return configurations.filter(({ id }) => maySee(caller, id));
  }
}

/** One presentation configuration. */
export class GetPresentationConfiguration {
  /** @throws Failure `not_found` also for one outside the client's restriction. */
  async execute(caller: TenantCaller, id: string): Promise<PresentationConfiguration> {
    assertMaySee(caller, id);
    const configuration = await caller.configured.presentationConfiguration(id);
    if (configuration === undefined) throw unknown(id);
    return configuration;
  }
}
