import type { RequestBodySource } from '../upstream/client.js';

/** The form of a call that reaches its upstream while it still arrives from the client. */
export interface UploadBody {
  /** Value of the content type with the form's boundary. */
  readonly contentType: string;
  /** Nothing of it has been let go yet, so that it may be sent to another target. */
  readonly canReplay: boolean;
  /**
   * @param model takes the place of the name in the form; null to leave it
   * @returns the pieces that are there, and where the rest comes from, or null when they are all
   */
  open(model: string | null): {
    readonly body: readonly Buffer[];
    readonly source: RequestBodySource | null;
  };
}
