#!/bin/sh
# Makes the files beside it. Run by hand after a change here; needs ffmpeg with libx264, libmp3lame and libwebp.
set -eu
cd "$(dirname "$0")"
rm -f ./*.h264 ./*.webp ./*.jpg ./*.mp3 ./*.flac

make() { ffmpeg -nostdin -v error -y "$@"; }

# A square that goes round over a gradient once in 48 frames, so that the end joins the beginning. Each picture is one
# slice and one NAL unit, the first an IDR picture, all others predicted from the one before: they can be repeated.
for size in 1280x720 720x1280 720x720 320x180; do
  width=${size%x*}
  height=${size#*x}
  side=$(((width < height ? width : height) / 5))
  make -f lavfi -i "gradients=s=$size:r=24:d=2:c0=0x203060:c1=0xd08040:nb_colors=2:x0=0:y0=0:x1=$width:y1=$height:speed=0.00001" \
    -f lavfi -i "color=c=0xf0f0e0:s=${side}x$side:r=24:d=2" \
    -filter_complex "overlay=x=(W-w)*(0.5+0.4*cos(PI*t)):y=(H-h)*(0.5+0.4*sin(PI*t)),format=yuv420p,trim=end_frame=48" \
    -c:v libx264 -profile:v baseline -level 4.2 -preset veryslow -crf 30 -g 48 -bf 0 -threads 1 \
    -x264-params "keyint=48:min-keyint=48:scenecut=0:slices=1:sliced-threads=0:aud=0" \
    -bsf:v "filter_units=remove_types=6" -f h264 "video-$size.h264"
  make -i "video-$size.h264" -vf "scale=320:-2" -frames:v 1 -quality 60 "thumbnail-$size.webp"
  make -i "video-$size.h264" -vf "select=not(mod(n\,4)),scale=160:-2,tile=4x3" -frames:v 1 -q:v 8 "sheet-$size.jpg"
done

# Four tones a second with gaps, as words have. Without a bit reservoir each frame of the MP3 stands for itself.
tones() {
  echo "aevalsrc=floor(127*lt(mod(t\,0.25)\,0.2)*0.3*sin(2*PI*t*(180+60*mod(floor(t*4)*3\,7))))/128:s=24000:d=$1"
}
make -f lavfi -i "$(tones 4)" -c:a libmp3lame -b:a 32k -reservoir 0 -write_xing 0 -id3v2_version 0 -map_metadata -1 \
  -fflags +bitexact -f mp3 speech.mp3
for seconds in 0.25 0.5 1 2 4 8; do
  make -f lavfi -i "$(tones $seconds)" -c:a flac -sample_fmt s16 -compression_level 12 -map_metadata -1 \
    -fflags +bitexact -flags +bitexact "speech-$seconds.flac"
done
