import type { Snapshot } from '../../config/types.js';
import { leadingField } from '../../wire/form-data.js';
import { type FormPart, type MultipartLimits, readForm } from '../../wire/multipart.js';
import { boundaryOf } from '../../wire/multipart-type.js';
import { PartNames, type PartRules } from '../../wire/part-names.js';
import type { Call, OpenedForm, UploadBody } from '../call.js';

/** A form whose whole body is in memory. */
export class WholeForm implements UploadBody {
  readonly contentType: string;
  readonly canReplay = true;
  readonly parts: readonly FormPart[];
  readonly #boundary: string;
  readonly #body: Buffer;

  /**
   * @param body of a call with a form
   * @throws {GatewayError} if the body is not a form, or has parts with ambiguous names
   */
  constructor(call: Call, body: Buffer, rules: PartRules) {
    const boundary = boundaryOf(call.exchange.head.contentType);
    this.contentType = `multipart/form-data; boundary="${boundary}"`;
    this.parts = readForm(body, boundary, formLimits(call.running.snapshot));
    const names = new PartNames(rules);
    call.steering = this.parts.flatMap(({ name }) => names.add(name) ?? []);
    this.#boundary = boundary;
    this.#body = body;
  }

  open(model: string | null): OpenedForm {
    if (model === null) return { body: [this.#body], source: null };
    const part = this.parts.find(({ name }) => name === 'model');
    if (part === undefined) {
      const field = leadingField(this.#boundary, { name: 'model', value: model, firstByte: this.#body[0] });
      return { body: [field, this.#body], source: null };
    }
    const start = part.data.byteOffset - this.#body.byteOffset;
    const end = start + part.data.length;
    const body = [this.#body.subarray(0, start), Buffer.from(model), this.#body.subarray(end)];
    return { body, source: null };
  }
}

const mostParts = 128;
const partHeadBytes = 8 * 1024;
/** A prompt of 32,000 characters at four bytes each fits. */
const fieldBytes = 256 * 1024;

/** Returns the limits of forms. */
export function formLimits({ limits }: Snapshot): MultipartLimits {
  return { parts: mostParts, headerBytes: partHeadBytes, fieldBytes, fileBytes: limits.uploadBytes };
}
