import { mayUse } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';

/** @throws Failure `not_found`: what a client may not use does not exist for it. */
export function assertMaySee(caller: TenantCaller, id: string): void {
  if (!maySee(caller, id)) throw unknown(id);
}

/** Whether the client may use the presentation configuration. */
export function maySee({ allowedPresentationConfigs }: TenantCaller, id: string): boolean {
  return mayUse(allowedPresentationConfigs, id);
}

export function unknown(id: string): Failure {
  return new Failure('not_found', `there is no presentation configuration ${JSON.stringify(id)}`);
}
