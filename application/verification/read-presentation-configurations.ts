import { mayUse } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TenantCaller } from '../caller.ts';

/** The presentation configurations that the client may use, in order of their ids. */
export class ListPresentationConfigurations {
  async execute(caller: TenantCaller): Promise<readonly PresentationConfiguration[]> {
    const configurations = await caller.view.presentationConfigurations();
    return configurations.filter(({ id }) => maySee(caller, id));
  }
}

/** One presentation configuration. */
export class GetPresentationConfiguration {
  /** @throws Failure `not_found` also for one outside the client's restriction. */
  async execute(caller: TenantCaller, id: string): Promise<PresentationConfiguration> {
    assertMaySee(caller, id);
    const configuration = await caller.view.presentationConfiguration(id);
    if (configuration === undefined) throw unknown(id);
    return configuration;
  }
}

/** @throws Failure `not_found`: what a client may not use does not exist for it. */
export function assertMaySee(caller: TenantCaller, id: string): void {
  if (!maySee(caller, id)) throw unknown(id);
}

function maySee({ allowedPresentationConfigs }: TenantCaller, id: string): boolean {
  return mayUse(allowedPresentationConfigs, id);
}

function unknown(id: string): Failure {
  return new Failure('not_found', `there is no presentation configuration ${JSON.stringify(id)}`);
}
