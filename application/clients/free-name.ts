import { Failure } from '../../domain/shared/failure.ts';
import type { ServiceSettings } from '../ports/settings.ts';

/**
 * The root client stands in the configuration, not in the store, so the store cannot refuse its name.
 * @throws Failure `conflict`.
 */
export function assertFreeName(settings: ServiceSettings, clientId: string): void {
  if (clientId === settings.rootClient.clientId) {
    throw new Failure('conflict', 'a client of this id exists already');
  }
}
