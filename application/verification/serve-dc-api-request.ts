import { isDcApi } from '../../domain/sessions/session.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { dcApiRequests } from '../../domain/verification/dc-api.ts';
import { needs } from '../needs.ts';
import { OpenRequests } from './open-requests.ts';

/** Hands a request to the page that asks its browser with it (OpenID4VP 1.0 appendix A.1). */
export class ServeDcApiRequest extends needs({ openRequests: OpenRequests }) {
  /** @throws Failure `not_found`; `gone` once the request has expired or was answered. */
  async execute(tenantId: TenantId, publicId: PublicId): Promise<JsonObject> {
    const { request } = await this.ports.openRequests.fetch(tenantId, publicId, isDcApi);
    return dcApiRequests(request);
  }
}
