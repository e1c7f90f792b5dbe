// Written by Benchmarks/Voice/fit.py.

extension SpeechJudge {
    /// Of both sums the weights and the bias: little-endian floating point numbers, in base 64.
    static let digits = """
        8CaoP1zoQL9SQou+K0iMP1ioob9p4uU/E5G8P/KzmT/nabo/qSPHvp4WL7/0bE++uEO5P9zelD5OKLM/eQ2/PxsFxr4U4Wa9B51dP6BqFb/Y\
        jHc/0mGyv+FLNr85ugrAfqf+vHEhPT9W16K+TqEWP55Psr+ps+++qlagvPm6bj42o8g/eJirPr7VpT5Ogr4+zCcTwO1bOj6VkPm9cb04vgAA\
        AAA82AK/LJPRPaeYjj4b1zPA7Wa4Pjddrz5Gn5Y/SYk1vwK+sT67JKS+K9ujP9nCiL/nOY4+itxrvnIszT/BRYXAbSTCPwx7iD/e4SC/lWzv\
        wGHegD52VsW/BT8fwQfiV8Ac7p4/t7oCwMAClr5DLgS+CpMKwHqAU70XBcw95IvDPOAXXL+2S+6/HQ+wP+MFq7/Thk+/w3acPnyDpL/ec7a/\
        /fMuwI2DWz9n8f7A0aaOP6iLpb9tWJw/syb5u9ocCMGg1go/s/i+PkNqfz5MZkq/fOCxwhgeub4+BGI9Bg13P6iH2LxeBYE/O2KSP7po4D/K\
        2ZC/oErfPh5zdEAnxYO/3t14PuejE0ASb8++qA6vPw8xB8DN+M4+q/1IQSlGqb5/pNlAWTtuv6fcVD5jV0c+YYgvvroL3T8AAAAAVnFiP9IC\
        CDv1cb49SwLUv4IHMz6Jzam+ABOlv5/0hEF3DPa9VGd9PoWtLsJUaJu+fxKovdp1gz1A6T+//NaMPspFS0D9D0C/ml4+v6s9lME3340+MoW4\
        Pu56JkAvSYw+7jwmQNFRiD9D0A/ABjAKQL+mSr3oBQxAGP/Fv1+qzT/+9c0/R7i6v1GvlT/0+bJC6oE1wBQZqT/yivi9VF8mwAcoWj8ALFJA\
        +UEIP6hzuT54KoU/oBbMPs00Fj9lkI2+HvKIvMv6eL4H4eLAkQO0vqclOD8cGB+/r4LmvqttGr919lS/8vOlPWgcCL5KyaY/On20PyIm+r8p\
        cp4/w77ZP89Xqr0T0QZABIvJv5lgjMCTkQpA2ZA7vxMkUT+FghbABxqpw6w+3z6EmFG/ZY91v0hEIcDulytCMS9Pv/Vzhj7oAJI+vlQGwKDL\
        Uj0ELgI/UwUBQHqJl77H1F29J8mZvwPldcBkQ5y+uXwfP+NnrT7kcCQ/usIIwK9SMD5zJie+3rCNvwDeAj7tVae/ZPglQCpYAL/UVzRAIC53\
        P7yEOz8MBoDBpRe9QGYKhj5IUBHCBOQoQMhQJEDYziO+iD9DQNovJT868mO/MzXHvnvZTz+YtyE/74svw++HO78EhEg/6Iyev60I1j0PcnS+\
        V+rNv79/Jj9WtKS/m/jwwP1XKz4hb2e+FAEAwoGODL9JStk+CS6CwAcITr84zlk/v1GdPbnEzzykEo88WRdIPaNDuT3URkA+KiX3vnAR077i\
        3Tg9l7yMPhssNj8PnkM/FKYQPwXmAz8tcis/EfqovizGwL12ZZfAR5dsP0haHr83cHW+e4mQPxw2lj4rVMc/eMerPwV+Tz/EkuE/aT8Rvz9M\
        6r5csZA5oeqnPxTchD7y77Q/eH+YP5dGFL+hbJM9lm2TPw9U174jBXo/6xihv9UWyr64RAbA4Xyavfb5Cj9Nl1u+cEQGP8v2h79ovt6+gK64\
        vnVvBD99Epo/NDyAPvm1cb9eYck+7OUEwBxMuT1uPo89RQCNvQAAAABA6fO+vkrlvravfz4HeyvAiLKePthcMz4QzC1A4F3wvqUGob7udjy/\
        71F3P01Mp7/NB8E+SXs3PpDZjj+VvYrAHe2tP3L7qT4NeRC/0JsawfVfBD/T2Ji/7tfAwMp1QsAAgcE/La/+v/44gr6jnma+sB7tv9jsMD0i\
        KcS9ssgUvlZ93L4oCDA/tnHFP/xBu7+1FjS/Hs0AP5Qrlr/l/Ei/fL0ZwPK+dD+H9x5A2KZrP50AX7+BB0M+8E8SPa7RgUCIE8M//9K/Puvs\
        wD5xETa/DRiRwgIE8r55LDo9WKCAP8RXX74LmJI/cO8ePwhJsz8R6iK/IYshPoVwkkC7zFS/oGvjPnR7C0BlIxy+tDM2Pzfev79u7dI+7+tl\
        QRmJYD6DWvpAdfJKv8fxHT62G2I++IvDPTOs1j8AAAAABLw7P+6NIL5MGCS/cnPTv7cANz4y0ZW+YHifv6XLUEEM4ZC+Rfv0PpO3HsK+zpg+\
        yFSwPpbiKL6D2pC+0CvkPdI8PkAlsyG/xwlgv/3Iq8EeoAe9zufkve819j/5eRA+W6UvQLWnpT+sbQHADYXuP5vQxb723fY/846Hv45Joz+5\
        K8A/DFrNvlCp+z/S2oNCeGU2wEauCr9oX2K+rQoSwFVOjkAs1E69ufYsPzhdWj78wF8/KACvvLixGD8JLxY/sE8kPkCS+LwFle7AxRravviw\
        Nz/UBci+tmEcvp48KL9J2kG/qJOnvqwQ+T6memg/XQySP/830L919Rs/O/6qP0hJfDzO1gRAfIjUvyxXjMDPuN0/l/hAv1CX2j5SugvAYCLB\
        wx8ppD5TWBW/0VU2vyJyWcClgGlCdhthvwx6qT3oUyI/0jgUwKmFSz1Zaks/xNEzP8m1k77yIRy9dG5zv7X5d8ADI/O+04k7P8JRXT5bxNA+\
        RLzcv2WeKj/fKoE/tC1zvzaTDT46l02/DC22PglG2b6ALTdAl9JFP1i8Pz8pzzPBpsaAPgJKwzy3PAnCgZccQLe9YkC6DvS9NvQhQOeCAD8Z\
        +8u+ZlUvv2dJLj8LB5M+kXl8wwK5Vb5U4Ck/F/F8v+P1Db4Eip6+DHcJwJ4TZrsxU4K/Z8n5wOQ/pz1ET7C+wTzpwQBEyr56WsQ8awx5wG+L\
        Xb/AHyo/5+VLPUzyszzOzKQ8hhdCPXCmqz1cagE++zRAvyCFGL+MHIc8kZY3PvxQRj95BCQ/4M7qPgcLIj/jbzc/PeWJvrpoPb7EGpjA
        """
}
